/* SPDX-License-Identifier: MIT */
/* protocol/lease_schedule.h - the timetable of a lease, for semlock and its helpers.
 *
 *	  renewal sent    RENEW           TERM          KILL, LAST    end: others may enter
 *	       |------------|---------------|----------------|----------|
 *	       0           1/3             2/3             9/10         1
 *
 * The helper renews the lease at RENEW.  If that fails, the helper can try again for another third,
 * until semlock tells the command to end (TERM).  Then the command has time to end by itself.  At
 * KILL, semlock kills what still runs, early enough for a busy machine to find and end all
 * processes.
 *
 * The helper retries until LAST.  LAST is not before TERM, because a late renewal can still save
 * the lock.  LAST is not after KILL, because a renewal would then keep a lock whose command is
 * dead.  If the answer that grants the lock comes after ENTER (1/2), the helper must renew the lock
 * before it says OK: otherwise TERM would come too soon after the command's start. */
#ifndef SEMLOCK_PROTOCOL_LEASE_SCHEDULE_H
#define SEMLOCK_PROTOCOL_LEASE_SCHEDULE_H

#include <stdint.h>

/* In sixtieths of a lease. */
enum lease_part {
	LEASE_BEAT = 15, /* replaces RENEW where each try takes several round trips, or a login */
	LEASE_RENEW = 20,
	LEASE_ENTER = 30,
	LEASE_TERM = 40,
	LEASE_LAST = 54,
	LEASE_KILL = 54,
	LEASE_END = 60
};

_Static_assert(LEASE_BEAT <= LEASE_RENEW, "a slow server gets more tries");
_Static_assert(2 * LEASE_RENEW <= LEASE_TERM,
    "a failed renewal can be repeated before the command is told to end");
_Static_assert(LEASE_RENEW < LEASE_ENTER && LEASE_ENTER < LEASE_TERM,
    "a lock that is entered can be renewed in time");
_Static_assert(LEASE_TERM < LEASE_KILL, "the command may end by itself");
_Static_assert(LEASE_TERM <= LEASE_LAST && LEASE_LAST <= LEASE_KILL,
    "no try too few, and none for a killed command");
_Static_assert(LEASE_KILL < LEASE_END, "the command is gone before others may enter");

/* The moment of PART in a lease of LEASE nanoseconds that ends at END. */
static inline int64_t lease_moment(int64_t end, int64_t lease, enum lease_part part)
{
	return end - lease / LEASE_END * (LEASE_END - part);
}

#endif
