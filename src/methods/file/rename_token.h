/* methods/file/rename_token.h - the token of the method rename, wherever it is. */
#ifndef SEMLOCK_METHODS_FILE_RENAME_TOKEN_H
#define SEMLOCK_METHODS_FILE_RENAME_TOKEN_H

#include "methods/file/lockdir.h"

/* The name that the token has while the lock is held, into NAME, which is returned. */
const char *rename_token_held_name(const struct file_lock *file, char name[NAME_SIZE]);

/* Open it under whichever name it has.  -1 with errno set: ENOENT if there is none. */
int rename_token_open(const struct file_lock *file);

/* Rename it from FROM to TO, which is not replaced.  It is under our flock.  Returns 0, or -1
 * with errno set. */
int rename_token_move(const struct file_lock *file, const char *from, const char *to);

/* Is NAME in the directory?  Then STATUS says what it is. */
bool rename_token_is_there(const struct file_lock *file, const char *name, struct stat *status);

/* A name that the token has never had, for the holder that FILE->record describes, after
 * BEATS signs of life.  Returns 0, or -1 with ERROR filled: it would be too long. */
int rename_token_name(const struct file_lock *file, unsigned beats, char name[NAME_SIZE],
    struct error *error);

/* What such a NAME says of the holder: a RECORD_FULL, or RECORD_JUNK. */
void rename_token_read_name(const struct file_lock *file, const char *name, struct record *record);

/* A name that the token has while somebody holds the lock, LOCK.held or one of rename_token_name(),
 * into FOUND, but not the name BUT.  Returns 1, 0 if there is none, or -1 with errno set. */
int rename_token_find_away(const struct file_lock *file, const char *but, char found[NAME_SIZE]);

/* Is it one at all?  It is open under LOCK->fd, and at home; our record will be written over what
 * is in it, so that must be nothing that anybody could miss.  Returns 0, or -1 with ERROR filled. */
int rename_token_check(const struct lock *lock, struct error *error);

/* --init: make it, unless there is one.  Returns 0, or -1 with ERROR filled. */
int rename_token_make(struct lock *lock, struct error *error);

#endif
