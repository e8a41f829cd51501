/* SPDX-License-Identifier: MIT */
/* parse - prints what semlock reads in lines of /proc. */
#include <config.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "sys/file_system.h"
#include "sys/open_fds.h"
#include "sys/process.h"

static int show_lock(const char *line)
{
	struct procfs_lock lock;

	if (!procfs_lock_line(line, &lock))
		return printf("none\n");
	printf("%u %s %s %ld %x:%x:%llu %lld ", lock.kind, lock.waiting ? "waits" : "holds",
	    lock.exclusive ? "write" : "read", lock.pid, lock.major, lock.minor, lock.inode,
	    lock.first);
	return lock.last == LLONG_MAX ? printf("end\n") : printf("%lld\n", lock.last);
}

static int show_stat(const char *line)
{
	struct procfs_stat stat;

	if (!procfs_stat(line, &stat))
		return printf("none\n");
	return printf("%s %c %d %llu\n", stat.name, stat.state, (int)stat.parent, stat.started);
}

static int show_mount(const char *line)
{
	struct procfs_mount mount;

	if (!procfs_mount_line(line, &mount))
		return printf("none\n");
	return printf("%d %u:%u %s %s %s%s%s%s\n", mount.id, mount.major, mount.minor, mount.point,
	    mount.type, mount.source,
	    file_system_hides_locks(&mount, true) ? " flock=here-only" : "",
	    file_system_hides_locks(&mount, false) ? " fcntl=here-only" : "",
	    file_system_may_hide_locks(&mount) ? " maybe-this-mount-only" : "");
}

/* parse locks|stat|mounts <TEXT: a line for each line. */
int main(int argc, char **argv)
{
	char line[8192];

	while (argc == 2 && fgets(line, sizeof line, stdin) != NULL) {
		if (strcmp(argv[1], "locks") == 0)
			show_lock(line);
		else if (strcmp(argv[1], "stat") == 0)
			show_stat(line);
		else
			show_mount(line);
	}
	return argc == 2 ? 0 : 64;
}
