/* A file that exists while the lock is held, with the record in it. */
#include <config.h>

#include "methods/file/filemethods.h"
#include "methods/file/plainfile.h"

static int excl_make(struct lock *lock, struct error *error)
{
	return plainfile_make(lock, lock->create_mode, error);
}

static int excl_write(struct lock *lock, struct error *error)
{
	char text[RECORD_LONGEST];
	size_t length = record_write(&lock->file->record, lock->method->name, text);

	return plainfile_put(lock->fd, text, length, error);
}

static const struct object excl_object = {
    .what = "a regular file with its holder's PID",
    .type = S_IFREG,
    .make = excl_make,
    .write = excl_write,
    .publish = plainfile_publish,
    .read = plainfile_read,
    .remove = plainfile_remove,
};

const struct method method_excl = {
    .name = "excl",
    .file = &(const struct file_method){
	.object = &excl_object,
	FILE_METHOD_FUNCTIONS,
    },
};
