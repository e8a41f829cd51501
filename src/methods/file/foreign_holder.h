/* SPDX-License-Identifier: MIT */
/* methods/file/foreign_holder.h - waiting for a holder that does not use flock(2). */
#ifndef SEMLOCK_METHODS_FILE_FOREIGN_HOLDER_H
#define SEMLOCK_METHODS_FILE_FOREIGN_HOLDER_H

#include "methods/file/lockdir.h"

/* Sleep until something happens to the lock's name, process PID (0: none is known) ends, or it is time to examine the
 * lock again.  DIES_WITH_IT: the lock is not released before that process ends.  AGAIN: examine it; BUSY: a signal
 * came.  The first of several calls returns at once, because the lock may have changed before that call began to
 * listen. */
enum outcome foreign_holder_await(struct lock *lock, pid_t pid, bool dies_with_it);

/* A descriptor that becomes readable when the directory changes; or -1. */
int foreign_holder_listen(struct lock *lock);

/* Stop listening. */
void foreign_holder_forget(struct file_lock *file);

#endif
