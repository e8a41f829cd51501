/* SPDX-License-Identifier: MIT */
/* methods/file/rename_file.h - the file of the method rename, and its two names: at home LOCK; away,
 * while the lock is held, LOCK.held. */
#ifndef SEMLOCK_METHODS_FILE_RENAME_FILE_H
#define SEMLOCK_METHODS_FILE_RENAME_FILE_H

#include "methods/file/lockdir.h"

/* Put LOCK.held into NAME.  Returns NAME. */
const char *rename_file_held_name(const struct lock *lock, char name[NAME_SIZE]);

/* Open the file as LOCK or LOCK.held.  Returns its descriptor, or -1 with errno set: ENOENT if there is
 * none. */
int rename_file_open(const struct lock *lock);

/* Flock the file that is open as FD.  TAKEN; BUSY: it is flocked or, with SLEEP, a signal ended the sleep;
 * FAILED, with ERROR filled: flock(2) does not work here. */
enum outcome rename_file_flock(int fd, enum wait wait, struct error *error);

/* Rename the file, which is under our flock, from FROM to TO, which is not replaced.  Returns 0, or -1
 * with errno set. */
int rename_file_move(const struct lock *lock, const char *from, const char *to);

/* Is LOCK->fd, which is at home, the file of such a lock?  Our record will be written over its contents: they must be
 * empty, a record or a PID.  Returns 0, or -1 with ERROR filled. */
int rename_file_check(const struct lock *lock, struct error *error);

/* --init: make the file, unless there is one.  Returns 0, or -1 with ERROR filled. */
int rename_file_make(struct lock *lock, struct error *error);

#endif
