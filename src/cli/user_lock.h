/* cli/user_lock.h - --name: a lock in the user's own directory. */
#ifndef SEMLOCK_CLI_USER_LOCK_H
#define SEMLOCK_CLI_USER_LOCK_H

#include <stdbool.h>

#include "report/error.h"

/* The path of the lock called NAME, in $XDG_RUNTIME_DIR/semlock, else /run/user/UID/semlock, else
 * /tmp/semlock-UID: a directory of the user's that no other user can write to.  With CREATE, it is made
 * if it is not there.  Returns a string for free(3), or NULL with ERROR filled. */
char *user_lock_path(const char *name, bool create, struct error *error);

#endif
