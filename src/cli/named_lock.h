/* SPDX-License-Identifier: MIT */
/* cli/named_lock.h - --name: a lock in the user's own directory. */
#ifndef SEMLOCK_CLI_NAMED_LOCK_H
#define SEMLOCK_CLI_NAMED_LOCK_H

#include <stdbool.h>

#include "report/error.h"

/* Find the path of the lock called NAME.  Root's locks are in /run/semlock (mode 0755).  The locks
 * of another user are in .local/state/semlock (mode 0700), in the home directory that the password
 * database names, whatever HOME says.  With CREATE, creates the directory if it does not exist.
 * Returns a string for free(3), or NULL with ERROR filled. */
char *named_lock_path(const char *name, bool create, struct error *error);

#endif
