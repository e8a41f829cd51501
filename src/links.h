/* links.h - following symbolic links that others may have planted. */
#ifndef SEMLOCK_LINKS_H
#define SEMLOCK_LINKS_H

#include <limits.h>

#include "report.h"

enum links {
	LINKS_FOLLOWED, /* RESOLVED is where they lead: itself no link, or not there */
	LINKS_MAGIC,    /* one that only the kernel can follow, as /dev/fd/8 */
	LINKS_REFUSED   /* WHY says why */
};

/* Follow the links that the last component of NAME is the first of, and put the path at
 * their end into RESOLVED.  In a directory like /tmp anybody can plant a link that leads us
 * to open, and lock, a file of the planter's choice: a link there counts only if its owner
 * could do us harm anyway: us, root, the directory's owner. */
enum links links_follow(const char *name, char resolved[PATH_MAX], struct why *why);

#endif
