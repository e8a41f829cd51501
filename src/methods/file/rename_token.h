/* methods/file/rename_token.h - the token of the method rename, and its names: at home LOCK; away,
 * while the lock is held, LOCK.held or a unique name. */
#ifndef SEMLOCK_METHODS_FILE_RENAME_TOKEN_H
#define SEMLOCK_METHODS_FILE_RENAME_TOKEN_H

#include "methods/file/lockdir.h"

/* Put LOCK.held into NAME.  Returns NAME. */
const char *rename_token_held_name(const struct file_lock *file, char name[NAME_SIZE]);

/* Open the token as LOCK or LOCK.held.  Returns its descriptor, or -1 with errno set: ENOENT if there is
 * none. */
int rename_token_open(const struct file_lock *file);

/* Rename the token, which is under our flock, from FROM to TO, which is not replaced.  Returns 0, or -1
 * with errno set. */
int rename_token_move(const struct file_lock *file, const char *from, const char *to);

/* Is NAME in the directory?  Then STATUS is filled. */
bool rename_token_is_there(const struct file_lock *file, const char *name, struct stat *status);

/* Put a unique name for the holder that FILE->record describes, after BEATS signs of life, into NAME.
 * Returns 0, or -1 with ERROR filled: it would be too long. */
int rename_token_name(const struct file_lock *file, unsigned beats, char name[NAME_SIZE],
    struct error *error);

/* Read the RECORD in such a NAME: RECORD_FULL or RECORD_JUNK. */
void rename_token_read_name(const struct file_lock *file, const char *name, struct record *record);

/* Put a name under which a token is away, but not the name BUT, into FOUND.  Returns 1, 0 if there is
 * none, or -1 with errno set. */
int rename_token_find_away(const struct file_lock *file, const char *but, char found[NAME_SIZE]);

/* Is LOCK->fd, which is at home, a token?  Our record will be written over its contents: they must be
 * empty, a record or a PID.  Returns 0, or -1 with ERROR filled. */
int rename_token_check(const struct lock *lock, struct error *error);

/* --init: make the token, unless there is one.  Returns 0, or -1 with ERROR filled. */
int rename_token_make(struct lock *lock, struct error *error);

#endif
