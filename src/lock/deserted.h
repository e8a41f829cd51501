/* lock/deserted.h - is a lock free at each look, so that it belongs to no living queue? */
#ifndef SEMLOCK_LOCK_DESERTED_H
#define SEMLOCK_LOCK_DESERTED_H

#include "lock/lock.h"

struct bytes {
	long long first, last; /* LLONG_MAX: to the end of the file */
};

/* The bytes of a lock with a range that LOCK asks for; of slots, one each. */
struct bytes attempt_bytes(const struct lock *lock);

/* Does LOCK ask for any of the bytes from FIRST to LAST?  (A lock without ranges is all bytes.) */
bool attempt_overlaps(const struct lock *lock, long long first, long long last);

/* When a lock counts as deserted: found free COUNT times over SPELL ns; and then, for HOLD ns in which
 * we hold it, no other process begins to wait for it in the kernel. */
struct looks {
	int count;
	int64_t spell, hold;
};

/* Take LOCK if it is deserted.  The LOOKS are irregularly spaced, so that a lock handed on among
 * living waiters is soon found busy.  BUSY: not free after *SEEN looks. */
enum outcome attempt_deserted(struct lock *lock, const struct looks *looks, int *seen, struct error *error);

/* A number of ns from 0 to MOST - 1, a different one for each call and process. */
int64_t attempt_jitter(int64_t most);

#endif
