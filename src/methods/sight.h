/* methods/sight.h - what a lock made of files shows of its holder to one who only looks. */
#ifndef SEMLOCK_METHOD_SIGHT_H
#define SEMLOCK_METHOD_SIGHT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "holder.h"
#include "report.h"

struct lock;

struct sight {
	bool there;           /* it is held, or left behind by the dead; the rest is empty if not */
	bool legible;         /* we may read its record */
	struct record record;
	struct stat status;   /* of the file, the directory or the link */
	struct stat carrier;  /* the same; of the lock's directory where a name is the record */
	int object;           /* an O_PATH descriptor of what its holder has under flock(2); -1: none */
	bool local;           /* the file system is this kernel's alone */
};

/* A method's peek: look at the open LOCK, and change nothing.  Returns 0, or -1 with WHY filled
 * when it cannot be looked at, or is no lock of that method.  Then, too, SIGHT is to be
 * forgotten. */
int namefile_peek(const struct lock *lock, struct sight *sight, struct why *why);
int symlink_peek(const struct lock *lock, struct sight *sight, struct why *why);
int rename_peek(const struct lock *lock, struct sight *sight, struct why *why);

void sight_forget(struct sight *sight);

#endif
