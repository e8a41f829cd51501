/* The mail programs' lock: a unique file that is linked to the lock's name.  They want
 * nothing in it but a PID: a record longer than 16 bytes makes some of them stumble, and
 * others never take the lock from the dead. */
#include <config.h>

#include <stdio.h>

#include "methods/file/filemethods.h"
#include "methods/file/plainfile.h"

static int make(struct lock *lock, struct error *error)
{
	mode_t mode = lock->file->local ? 0444 : 0644; /* over NFS, who locks has to be able to write */

	return plainfile_make(lock, lock->exact_mode ? lock->create_mode : mode, error);
}

static int write_record(struct lock *lock, struct error *error)
{
	char text[16];
	int length = snprintf(text, sizeof text, "%ld\n", (long)lock->file->record.pid);

	return plainfile_put(lock->fd, text, (size_t)length, error);
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

static int open_link(struct lock *lock, struct error *error)
{
	return lockdir_open(lock, &object, error);
}

const struct method method_link = {
    .name = "link",
    .can = LEAVES_RECORD | BEATS,
    .what = "a file made by link(2), as mail programs; NFS",
    .open = open_link,
    FILE_METHOD_FUNCTIONS,
};
