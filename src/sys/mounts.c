#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "sys/mounts.h"
#include "sys/process.h"

bool mounts_find(int fd, struct procfs_mount *mount)
{
	char path[64], text[1024], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *mounts;
	int id;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	id = process_file(path, text, sizeof text) < 0 ? -1 : procfs_mount_id(text);
	mounts = id < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (mounts == NULL)
		return false;
	while (!found && getline(&line, &size, mounts) > 0)
		found = procfs_mount_line(line, mount) && mount->id == id;
	free(line);
	fclose(mounts);
	return found;
}

void mounts_device(int fd, dev_t device, unsigned *major_number, unsigned *minor_number)
{
	struct procfs_mount mount;

	*major_number = major(device);
	*minor_number = minor(device);
	if (*major_number == 0 && mounts_find(fd, &mount)) {
		*major_number = mount.major;
		*minor_number = mount.minor;
	}
}
