/* owners/probe.h - a lock made of files, opened only to be looked at. */
#ifndef SEMLOCK_OWNERS_PROBE_H
#define SEMLOCK_OWNERS_PROBE_H

#include "lock/lock.h"
#include "methods/file/inspect.h"
#include "report/error.h"

struct probe {
	struct lock lock;
	struct lock_info info;
	struct child no_child;
};

/* Open LOCK anew: another thread may be using it.  Nothing is taken.  Returns 0, or -1 with ERROR
 * filled; PROBE is to be closed in either case. */
int probe_open(struct probe *probe, const struct lock *lock, struct error *error);

void probe_close(struct probe *probe);

/* The method of the lock NAME, if a full record in it tells; else NULL. */
const struct method *probe_method(const char *name);

#endif
