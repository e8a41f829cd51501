/* methods/file/filemethods.h - the methods whose locks are made of files, and the functions that most
 * of them share. */
#ifndef SEMLOCK_METHODS_FILE_FILEMETHODS_H
#define SEMLOCK_METHODS_FILE_FILEMETHODS_H

#include "methods/file/foreign_holder.h"
#include "methods/file/inspect.h"
#include "methods/file/publish.h"
#include "methods/file/takeover.h"

extern const struct method method_excl;
extern const struct method method_link;
extern const struct method method_mkdir;
extern const struct method method_rename;
extern const struct method method_symlink;

/* Put rename without flock(2) in the place of LOCK's method rename: see unique.c. */
void rename_unique_instead(struct lock *lock);

/* Of every struct file_method. */
#define FILE_METHOD_COMMON \
	.drop = publish_drop, .listen = foreign_holder_listen, .current = lockdir_current, \
	.release = publish_release

/* Of one whose struct object has no let_go: all but open. */
#define FILE_METHOD_FUNCTIONS \
	FILE_METHOD_COMMON, .take = publish_take, .prepare = publish_prepare, .idle = takeover_idle, \
	.inspect = inspect_object, .owned = publish_owned, .beat = publish_beat

#endif
