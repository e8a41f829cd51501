/* SPDX-License-Identifier: MIT */
/* lock/held_mode.h - which locks one of our descriptors carries already, from /proc/self/fdinfo.
 * Without /proc: none. */
#ifndef SEMLOCK_LOCK_HELD_MODE_H
#define SEMLOCK_LOCK_HELD_MODE_H

#include "lock/lock.h"

enum held_mode { HELD_NONE, HELD_SHARED, HELD_EXCLUSIVE };

struct held {
	/* the mode of its first lock of LOCK's kind; an exclusive one that does not cover LOCK's
	 * range counts as shared */
	enum held_mode mode;
	/* the descriptor also carries a lock of another kind, or of other bytes than LOCK's */
	bool more;
	/* it also carries a slot that is none of those asked for; only for a method whose slots are
	 * outside of LOCK's bytes */
	bool other_slot;
	int slot; /* the slot of LOCK that the descriptor carries, from 0; -1: none */
};

/* What LOCK->fd, the caller's descriptor, carries; nothing if we have opened it ourselves. */
struct held held_read(const struct lock *lock);

#endif
