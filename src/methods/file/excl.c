/* A file that exists while the lock is held, with the holder's PID in its first line. */
#include <config.h>

#include "methods/file/filemethods.h"
#include "methods/file/plainfile.h"

static int make(struct lock *lock, struct error *error)
{
	return plainfile_make(lock, lock->create_mode, error);
}

static int write_record(struct lock *lock, struct error *error)
{
	char text[RECORD_LONGEST];
	size_t length = record_write(&lock->file->record, lock->method->name, text);

	return plainfile_put(lock->fd, text, length, error);
}

static const struct object object = {
    .what = "a regular file with its holder's PID",
    .type = S_IFREG,
    .make = make,
    .write = write_record,
    .publish = plainfile_publish,
    .read = plainfile_read,
    .remove = plainfile_remove,
};

static int open_excl(struct lock *lock, struct error *error)
{
	return lockdir_open(lock, &object, error);
}

const struct method method_excl = {
    .name = "excl",
    .can = LEAVES_RECORD,
    .what = "a file with the holder's PID, as O_EXCL makes it",
    .open = open_excl,
    FILE_METHOD_FUNCTIONS,
};
