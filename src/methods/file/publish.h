/* SPDX-License-Identifier: MIT */
/* methods/file/publish.h - our own lock object: made, filled, flocked, published under the lock's
 * name, and removed.  The functions of a method without a take of its own. */
#ifndef SEMLOCK_METHODS_FILE_PUBLISH_H
#define SEMLOCK_METHODS_FILE_PUBLISH_H

#include "methods/file/lockdir.h"

/* A method's take, prepare, owned, drop and release, and an object's beat: see lock/method.h, lockdir.h. */
enum outcome publish_take(struct lock *lock, enum wait wait, struct error *error);
int publish_prepare(struct lock *lock, struct error *error);
bool object_owned(struct lock *lock);
void object_beat(struct lock *lock);
int object_drop(struct lock *lock, struct error *error);
void object_release(struct lock *lock);

/* Make FD, a new object of ours, no standard descriptor, and give it MODE if the user has named one.  Returns
 * its number; or -1 with errno set, and FD, which may be -1, is closed. */
int publish_set_up(const struct lock *lock, int fd, mode_t mode);

/* Link the file that lockdir_create_file() has made as FD under the lock's name.  Returns 0, or -1 with errno
 * set. */
int publish_link(const struct lock *lock, int fd);

/* Flock FD, signals notwithstanding.  Returns 0, or -1 with errno set: EWOULDBLOCK if another process has
 * kept it flocked for a second. */
int publish_flock(int fd);

/* Start the command, unless it is started, and fill LOCK->file->record with what there is to say of it.
 * Returns 0, or -1 with ERROR filled. */
int publish_describe(struct lock *lock, struct error *error);

/* Make LOCK->file->record the contents of FD, which is empty.  Returns 0, or -1 with ERROR filled. */
int publish_record(struct lock *lock, int fd, struct error *error);

/* FD has been made under the lock's own name, and is empty: give it MODE, if that is exact, flock and write it, in our
 * object's place; -1: open it.  TAKEN; AGAIN: the name means another object by now; FAILED, with ERROR filled. */
enum outcome publish_empty(struct lock *lock, int fd, mode_t mode, struct error *error);

#endif
