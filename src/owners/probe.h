/* owners/probe.h - a lock made of files, opened only to be looked at. */
#ifndef SEMLOCK_OWNERS_PROBE_H
#define SEMLOCK_OWNERS_PROBE_H

#include "lock/lock.h"
#include "methods/file/inspect.h"
#include "report/error.h"

struct probe {
	struct lock lock;
	struct lock_info info;
	struct child nobody;
};

/* Open LOCK anew, whether it is open or not: it may be in use by another thread.  Nothing is
 * taken.  Returns 0, or -1 with ERROR filled; PROBE is to be closed in any case. */
int probe_open(struct probe *probe, const struct lock *lock, struct error *error);

void probe_close(struct probe *probe);

/* The method of the lock NAME, if it is a lock made of files and says so itself, by a record of
 * semlock's; or NULL. */
const struct method *probe_method(const char *name);

#endif
