#include <config.h>

#include <stdio.h>

#include "lock/kernel_waiters.h"
#include "lock/lock.h"
#include "sys/mounts.h"
#include "sys/proc.h"

static unsigned kinds_of(const struct lock *lock)
{
	return (lock->method->can & CAN_RANGE) != 0 ? KIND_OFD | KIND_POSIX : KIND_FLOCK | KIND_OFD;
}

bool asleep_for(const struct lock *lock)
{
	FILE *locks = fopen("/proc/locks", "re");
	struct procfs_lock entry;
	unsigned major, minor;
	bool found = false;
	char line[256];

	if (locks == NULL)
		return false;
	mounts_device(lock->fd, lock->device, &major, &minor);
	while (!found && fgets(line, sizeof line, locks) != NULL)
		found = procfs_lock_line(line, &entry) && entry.waiting &&
			(entry.kind & kinds_of(lock)) != 0 && entry.major == major &&
			entry.minor == minor && entry.inode == (unsigned long long)lock->inode;
	fclose(locks);
	return found;
}
