/* methods/rename2.h - renaming without replacing. */
#ifndef SEMLOCK_METHOD_RENAME2_H
#define SEMLOCK_METHOD_RENAME2_H

/* Rename FROM to TO in DIRECTORY, unless TO exists: EEXIST.  EINVAL, ENOSYS: this system
 * or this file system cannot.  Returns 0 or -1. */
int rename_noreplace(int directory, const char *from, const char *to);

#endif
