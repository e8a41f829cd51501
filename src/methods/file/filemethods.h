/* SPDX-License-Identifier: MIT */
/* methods/file/filemethods.h - the methods whose locks are made of files, and the functions that most
 * of them share. */
#ifndef SEMLOCK_METHODS_FILE_FILEMETHODS_H
#define SEMLOCK_METHODS_FILE_FILEMETHODS_H

#include "lock/take.h"
#include "methods/file/foreign_holder.h"
#include "methods/file/heartbeat.h"
#include "methods/file/inspect.h"
#include "methods/file/publish.h"
#include "methods/file/takeover.h"

extern const struct method method_excl;
extern const struct method method_link;
extern const struct method method_mkdir;
extern const struct method method_rename;
extern const struct method method_symlink;

/* Of every method of locks made of files. */
#define FILE_METHOD_COMMON \
	.guard = heartbeat_guard, .unguard = heartbeat_unguard, \
	.acquire = lock_take_in_turn, .stuck_reason = lockdir_stuck_reason, \
	.current = lockdir_current, .owned = object_owned, .drop = object_drop, .release = object_release

/* Of one whose struct object has all functions. */
#define FILE_METHOD_FUNCTIONS \
	FILE_METHOD_COMMON, .open = lockdir_open, .prepare = publish_prepare, .take = publish_take, \
	.idle = takeover_idle, .inspect = inspect_object

#endif
