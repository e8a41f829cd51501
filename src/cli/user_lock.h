/* cli/user_lock.h - --name: a lock in a directory of the user's own. */
#ifndef SEMLOCK_CLI_USER_LOCK_H
#define SEMLOCK_CLI_USER_LOCK_H

#include <stdbool.h>

#include "report/error.h"

/* The path of the lock called NAME: in $XDG_RUNTIME_DIR/semlock, else /run/user/UID/semlock,
 * else /tmp/semlock-UID, which must be ours and nobody else's to write in; with CREATE, the
 * directory is made if it is not there.  Returns a string that stays, or NULL with ERROR
 * filled. */
const char *names_path(const char *name, bool create, struct error *error);

#endif
