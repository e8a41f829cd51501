/* methods/file/foreign_holder.h - waiting for a holder who does not use flock(2). */
#ifndef SEMLOCK_METHODS_FILE_FOREIGN_HOLDER_H
#define SEMLOCK_METHODS_FILE_FOREIGN_HOLDER_H

#include "methods/file/lockdir.h"

/* Sleep until something happens to the lock's name, or process PID (0: none known) ends,
 * or it is time to look again.  DIES_WITH_IT: it is not let go before that process ends.  AGAIN: look.  BUSY: a signal came.  The first call of a
 * row returns at once: what happened before it began to listen has to be looked at. */
enum outcome foreign_holder_await(struct file_lock *file, pid_t pid, bool dies_with_it);

/* A method's listen: the descriptor that tells of changes in the directory; or -1. */
int foreign_holder_listen(struct lock *lock);

/* Stop listening. */
void foreign_holder_forget(struct file_lock *file);

#endif
