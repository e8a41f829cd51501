/* SPDX-License-Identifier: MIT */
/* cli/named_lock.h - --name: a lock in the user's own directory. */
#ifndef SEMLOCK_CLI_NAMED_LOCK_H
#define SEMLOCK_CLI_NAMED_LOCK_H

#include <stdbool.h>

#include "report/error.h"

/* The path of the lock called NAME: root's is in /run/semlock (0755), another user's in
 * .local/state/semlock (0700) in the home directory of the password database, whatever the
 * environment says.  With CREATE, creates the directory if it does not exist.  Returns a string for
 * free(3), or NULL with ERROR filled. */
char *named_lock_path(const char *name, bool create, struct error *error);

#endif
