/* methods/file/guard_file.h - .LOCK.guard, a file beside a lock that cannot be flocked itself: the
 * process that is about to remove the lock has the guard under flock(2), and then removes it, too. */
#ifndef SEMLOCK_METHODS_FILE_GUARD_FILE_H
#define SEMLOCK_METHODS_FILE_GUARD_FILE_H

#include "methods/file/lockdir.h"

/* Take FILE's guard, and put its name into NAME.  Returns its descriptor, or -1 with errno set:
 * EWOULDBLOCK if another process has it. */
int guard_take(const struct file_lock *file, char name[NAME_SIZE]);

/* The same, but wait for LONGEST ns, signals notwithstanding. */
int guard_await(const struct file_lock *file, int64_t longest, char name[NAME_SIZE]);

/* Remove and release GUARD, whose name is NAME.  GUARD -1: do nothing. */
void guard_leave(const struct file_lock *file, int guard, const char *name);

#endif
