/* The lock of mail programs: a unique file that is linked to the lock's name.  It must contain only
 * a PID: some mail programs fail at more than 16 bytes, others then never take over from the dead. */
#include <config.h>

#include <stdio.h>

#include "methods/file/filemethods.h"
#include "methods/file/plainfile.h"

static int link_make(struct lock *lock, struct error *error)
{
	mode_t mode = lock->file->local ? 0444 : 0644; /* NFS: see takeover.c */

	return plainfile_make(lock, lock->exact_mode ? lock->create_mode : mode, error);
}

static int link_write(struct lock *lock, struct error *error)
{
	char text[16];
	int length = snprintf(text, sizeof text, "%ld\n", (long)lock->file->record.pid);

	return plainfile_put(lock->fd, text, (size_t)length, error);
}

static const struct object link_object = {
    .what = "a regular file with its holder's PID",
    .type = S_IFREG,
    .make = link_make,
    .write = link_write,
    .publish = plainfile_publish,
    .read = plainfile_read,
    .remove = plainfile_remove,
};

const struct method method_link = {
    .name = "link",
    .can = BEATS,
    .file = &(const struct file_method){
	.object = &link_object,
	FILE_METHOD_FUNCTIONS,
    },
};
