/* SPDX-License-Identifier: MIT */
/* Makes tests/semlock-broken of semlock: replaces some functions (the linker's --wrap) by the
 * faults of common lockers.  The torture has to find each.
 *
 * SEMLOCK_BROKEN=unchecked: the lock file is not compared with its name once it is locked.
 * SEMLOCK_BROKEN=moving: its name always means another file by then.
 * SEMLOCK_BROKEN=unguarded: a dead holder's lock is inspected, and then unlinked: no flock
 * guards it, and its name is not compared again.
 * SEMLOCK_BROKEN=uncompared: an flock guards it, and its name is not compared again.
 * SEMLOCK_BROKEN=obedient: a lock is never found deserted, whatever tickets lie before it.
 * Always: vfork(2) is fork(2), as under qemu-user.  That breaks nothing. */
#include <config.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lock/attempt.h"

struct file_lock;

bool __real_lockfile_current(const struct lock *lock);
bool __real_lockdir_same(const struct file_lock *file, const char *name, int fd);
int __real_flock(int fd, int operation);
enum outcome __real_attempt_deserted(struct lock *lock, const struct checks *checks,
    struct queue *queue, bool *sleeper, struct error *error);
bool __wrap_lockfile_current(const struct lock *lock);
bool __wrap_lockdir_same(const struct file_lock *file, const char *name, int fd);
enum outcome __wrap_attempt_deserted(struct lock *lock, const struct checks *checks,
    struct queue *queue, bool *sleeper, struct error *error);
int __wrap_flock(int fd, int operation);
pid_t __wrap_vfork(void);

static bool broken(const char *how)
{
	const char *wanted = getenv("SEMLOCK_BROKEN");

	return wanted != NULL && strcmp(wanted, how) == 0;
}

bool __wrap_lockfile_current(const struct lock *lock)
{
	if (broken("moving"))
		return false;
	return broken("unchecked") || __real_lockfile_current(lock);
}

bool __wrap_lockdir_same(const struct file_lock *file, const char *name, int fd)
{
	/* the delay of a busy machine, now and then */
	static const struct timespec a_moment = {0, 200000};

	if (broken("uncompared"))
		return true;
	if (!broken("unguarded"))
		return __real_lockdir_same(file, name, fd);
	nanosleep(&a_moment, NULL);
	return true;
}

enum outcome __wrap_attempt_deserted(struct lock *lock, const struct checks *checks,
    struct queue *queue, bool *sleeper, struct error *error)
{
	if (!broken("obedient"))
		return __real_attempt_deserted(lock, checks, queue, sleeper, error);
	*sleeper = false;
	return BUSY;
}

int __wrap_flock(int fd, int operation)
{
	return broken("unguarded") ? 0 : __real_flock(fd, operation);
}

pid_t __wrap_vfork(void)
{
	return fork();
}
