/* methods/file/filemethods.h - the methods whose locks are made of files. */
#ifndef SEMLOCK_METHODS_FILE_FILEMETHODS_H
#define SEMLOCK_METHODS_FILE_FILEMETHODS_H

#include "lock/method.h"

extern const struct method method_excl;
extern const struct method method_link;
extern const struct method method_mkdir;
extern const struct method method_rename;
extern const struct method method_symlink;

struct lock;

/* rename as it is done where flock(2) cannot be believed is put in the place of rename when
 * LOCK is opened, or found to be held so: see methods/unique.c. */
void rename_uniquely(struct lock *lock);

#endif
