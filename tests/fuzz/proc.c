/* SPDX-License-Identifier: MIT */
/* /proc/locks, fdinfo, stat, status and mountinfo.  The kernel writes them, but any user chooses
 * the names in them: of programs, mount points, network shares. */
#include <config.h>

#include "fuzz.h"
#include "sys/file_system.h"

#include "lock/held_mode.c" /* for mode_of() */
#include "sys/process.c"    /* for read_users() */

static void lock_line(const char *line)
{
	struct procfs_lock lock;

	if (!procfs_lock_line(line, &lock))
		return;
	MUST(lock.kind == KIND_FLOCK || lock.kind == KIND_OFD || lock.kind == KIND_POSIX);
}

static void fdinfo_line(const char *line)
{
	struct procfs_lock seen;
	struct method method = {.can = 0};
	struct lock_spec spec = {.method = &method};
	struct lock lock = {.spec = &spec};

	for (int i = 0; i < 2; i++) {
		method.can = i == 0 ? 0 : CAN_RANGE;
		spec.range.length = i == 0 ? 0 : 10;
		if (procfs_lock_line(line, &seen) && mode_of(&lock, &seen) != HELD_NONE)
			MUST(seen.kind == (i == 0 ? KIND_FLOCK : KIND_OFD));
	}
}

static void mount_line(const char *line)
{
	struct procfs_mount mount;

	if (!procfs_mount_line(line, &mount))
		return;
	MUST(memchr(mount.point, '\0', sizeof mount.point) != NULL);
	MUST(memchr(mount.source, '\0', sizeof mount.source) != NULL);
	MUST(strlen(mount.options) < sizeof mount.options && mount.type[0] != '\0');
	MUST(!file_system_hides_all_locks(&mount) ||
	     (file_system_hides_locks(&mount, true) && file_system_hides_locks(&mount, false)));
}

static void each_line(char *text)
{
	char *line, *rest;

	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		lock_line(line);
		fdinfo_line(line);
		mount_line(line);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct procfs_stat stat;

	if (procfs_stat(text, &stat)) {
		MUST(strlen(stat.name) < sizeof stat.name && stat.state != '\0');
		MUST(strncmp(strchr(text, '(') + 1, stat.name, strlen(stat.name)) == 0);
	}
	read_users(text, &(struct process){0});
	each_line(text);
	free(text);
	return 0;
}
