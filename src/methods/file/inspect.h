/* methods/file/inspect.h - what a lock made of files shows of its holder to one who only looks. */
#ifndef SEMLOCK_METHODS_FILE_INSPECT_H
#define SEMLOCK_METHODS_FILE_INSPECT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "methods/file/owner_record.h"
#include "report/error.h"

struct lock;

struct lock_info {
	bool there;           /* it is held, or left behind by the dead; the rest is empty if not */
	bool legible;         /* we may read its record */
	struct record record;
	struct stat status;   /* of the file, the directory or the link */
	struct stat carrier;  /* the same; of the lock's directory where a name is the record */
	int object;           /* an O_PATH descriptor of what its holder has under flock(2); -1: none */
	bool local;           /* the file system is this kernel's alone */
};

/* A method's peek: look at the open LOCK, and change nothing.  Returns 0, or -1 with ERROR filled
 * when it cannot be looked at, or is no lock of that method.  Then, too, INFO is to be
 * forgotten. */
int inspect_object(const struct lock *lock, struct lock_info *info, struct error *error);
int inspect_symlink(const struct lock *lock, struct lock_info *info, struct error *error);
int inspect_rename(const struct lock *lock, struct lock_info *info, struct error *error);

void lock_info_forget(struct lock_info *info);

#endif
