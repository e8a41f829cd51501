/* methods/file/guard_file.h - a file beside a lock that cannot be flocked itself: whoever is about to
 * remove the lock has it under flock(2), and removes it when he is done. */
#ifndef SEMLOCK_METHODS_FILE_GUARD_FILE_H
#define SEMLOCK_METHODS_FILE_GUARD_FILE_H

#include "methods/file/lockdir.h"

/* Take FILE's guard, and put its name into NAME.  Returns its descriptor, or -1 with errno set:
 * EWOULDBLOCK if somebody has it. */
int guard_take(const struct file_lock *file, char name[NAME_SIZE]);

/* The same, but wait for it for LONGEST ns, and a signal is no reason to give up. */
int guard_await(const struct file_lock *file, int64_t longest, char name[NAME_SIZE]);

/* Leave GUARD, which has NAME; -1: there is none. */
void guard_leave(const struct file_lock *file, int guard, const char *name);

#endif
