#include <config.h>

#include <stddef.h>
#include <sys/vfs.h>

#include "sys/crash_points.h"
#include "methods/file/filesystem.h"

bool filesystem_is_local(int fd)
{
	static const unsigned long kinds[] = {
	    0xEF53,     /* ext2, 3, 4 */
	    0x58465342, /* xfs */
	    0x9123683E, /* btrfs */
	    0xCA451A4E, /* bcachefs */
	    0xF2F52010, /* f2fs */
	    0x2FC12FC1, /* zfs */
	    0x01021994, /* tmpfs */
	    0x858458F6, /* ramfs */
	    0x794C7630, /* overlay */
	    0x4D44,     /* FAT */
	    0x2011BAB0, /* exFAT */
	};
	struct statfs status;

	if (FAULT_POINT("filesystem.local") || fstatfs(fd, &status) != 0)
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (((unsigned long)status.f_type & 0xFFFFFFFF) == kinds[i])
			return true;
	return false;
}
