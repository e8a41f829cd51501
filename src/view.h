/* view.h - a lock made of files, opened only to be looked at. */
#ifndef SEMLOCK_VIEW_H
#define SEMLOCK_VIEW_H

#include "lock.h"
#include "methods/sight.h"
#include "report.h"

struct view {
	struct lock lock;
	struct sight sight;
	struct bearer nobody;
};

/* Open LOCK anew, whether it is open or not: it may be in use by another thread.  Nothing is
 * taken.  Returns 0, or -1 with WHY filled; VIEW is to be closed in any case. */
int view_open(struct view *view, const struct lock *lock, struct why *why);

void view_close(struct view *view);

/* The method of the lock NAME, if it is a lock made of files and says so itself, by a record of
 * semlock's; or NULL. */
const struct method *view_method(const char *name);

#endif
