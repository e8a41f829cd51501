/* lock/safe_open.h - following symbolic links that others may have planted. */
#ifndef SEMLOCK_LOCK_SAFE_OPEN_H
#define SEMLOCK_LOCK_SAFE_OPEN_H

#include <limits.h>

#include "report/error.h"

enum links {
	SYMLINKS_FOLLOWED, /* RESOLVED is where they lead: itself no link, or not there */
	SYMLINKS_MAGIC,    /* one that only the kernel can follow, as /dev/fd/8 */
	SYMLINKS_REFUSED   /* ERROR says why */
};

/* Follow the links that the last component of NAME is the first of, and put the path at
 * their end into RESOLVED.  In a directory like /tmp anybody can plant a link that leads us
 * to open, and lock, a file of the planter's choice: a link there counts only if its owner
 * could do us harm anyway: us, root, the directory's owner. */
enum links safe_open_follow(const char *name, char resolved[PATH_MAX], struct error *error);

#endif
