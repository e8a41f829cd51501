/* sys/rename_noreplace.h - renaming without replacing. */
#ifndef SEMLOCK_SYS_RENAME_NOREPLACE_H
#define SEMLOCK_SYS_RENAME_NOREPLACE_H

/* Rename FROM to TO in DIRECTORY, unless TO exists: EEXIST.  EINVAL, ENOSYS: this system
 * or this file system cannot.  Returns 0 or -1. */
int rename_noreplace(int directory, const char *from, const char *to);

#endif
