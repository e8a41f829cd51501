#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "sys/mounts.h"
#include "sys/process.h"

static int mount_id(int fd)
{
	char path[64], text[1024];

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	return process_file(path, text, sizeof text) < 0 ? -1 : procfs_mount_id(text);
}

bool mounts_find(int fd, struct procfs_mount *mount)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	int id = mount_id(fd);
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	if (mounts == NULL)
		return false;
	while (!found && id >= 0 && getline(&line, &size, mounts) > 0)
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
