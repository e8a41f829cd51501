/* SPDX-License-Identifier: MIT */
/* owners/nesting.h - a command that runs under a lock asks for the same lock again.
 *
 * What the command has inherited is the only proof: the descriptor that carries the lock of a file, or the pipe to
 * the helper that holds a lock on a server. */
#ifndef SEMLOCK_OWNERS_NESTING_H
#define SEMLOCK_OWNERS_NESTING_H

#include "lock/lock.h"

enum nesting {
	NESTING_NONE,   /* nothing of LOCK's file is locked by what this process has inherited */
	NESTING_BESIDE, /* the inherited lock and the requested one do not conflict: both shared, other
			 * bytes of the file, or another kind of lock */
	NESTING_AGAIN,  /* the inherited lock would do, and another like it may be had: a slot beside a slot; on a
			 * server, a shared lock, but a waiter may be queued between the two */
	NESTING_COVERS, /* the inherited lock is held in a mode that covers the requested one */
	NESTING_LESS    /* the inherited lock is less than is requested: shared or a slot, not exclusive; or
			 * some of the bytes */
};

/* Does this process hold LOCK, which need not be open, through another descriptor, which it has inherited?  Unless NESTING_NONE, *FD is that
 * descriptor. */
enum nesting nesting_inherited(const struct lock *lock, int *fd);

#endif
