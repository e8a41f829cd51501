/* methods/filemethods.h - the methods whose locks are made of files. */
#ifndef SEMLOCK_METHOD_FILEMETHODS_H
#define SEMLOCK_METHOD_FILEMETHODS_H

#include "methods/method.h"

extern const struct method method_excl;
extern const struct method method_link;
extern const struct method method_mkdir;
extern const struct method method_rename;
extern const struct method method_symlink;

/* rename as it is done where flock(2) cannot be believed: not asked for by name, but put in
 * place of rename when the lock is opened, or found to be held so. */
extern const struct method method_rename_unique;

#endif
