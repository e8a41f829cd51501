/* SPDX-License-Identifier: MIT */
/* methods/file/inspect.h - read what a lock made of files says of its holder, and change nothing. */
#ifndef SEMLOCK_METHODS_FILE_INSPECT_H
#define SEMLOCK_METHODS_FILE_INSPECT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "methods/file/owner_record.h"
#include "report/error.h"

struct lock;

struct lock_info {
	bool there;           /* it is held, or was left behind; else all the rest is empty */
	bool legible;         /* RECORD could be read */
	struct record record;
	struct stat status;   /* of the file, the directory or the link */
	int object;           /* an O_PATH descriptor of what the holder has under flock(2); -1: none */
};

/* A method's inspect: fill INFO, which is empty (OBJECT -1), for the open LOCK.  Returns 0, or -1 with ERROR
 * filled when it cannot be looked at, or is no lock of that method.  Call lock_info_forget() in either case. */
int inspect_object(const struct lock *lock, struct lock_info *info, struct error *error);
int inspect_symlink(const struct lock *lock, struct lock_info *info, struct error *error);
int inspect_rename(const struct lock *lock, struct lock_info *info, struct error *error);

void lock_info_forget(struct lock_info *info);

#endif
