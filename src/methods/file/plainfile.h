/* methods/file/plainfile.h - lock objects that are regular files: what excl and link share. */
#ifndef SEMLOCK_METHODS_FILE_PLAINFILE_H
#define SEMLOCK_METHODS_FILE_PLAINFILE_H

#include "methods/file/publish.h"

/* Functions of a struct object.  MODE: of the file. */
int plainfile_make(struct lock *lock, mode_t mode, struct error *error);
enum outcome plainfile_publish(struct lock *lock, struct error *error);
void plainfile_read(int fd, struct record *record);
int plainfile_remove(struct lock *lock, int fd);

/* Make the LENGTH bytes at TEXT the contents of FD.  Returns 0, or -1 with ERROR filled. */
int plainfile_put(int fd, const char *text, size_t length, struct error *error);

#endif
