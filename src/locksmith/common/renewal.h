/* SPDX-License-Identifier: MIT */
/* locksmith/common/renewal.h - the life of a lock that is held: OK, START, HELD again and again,
 * until semlock releases it or it is lost.  protocol/lease_schedule.h says when. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_RENEWAL_H
#define SEMLOCK_LOCKSMITH_COMMON_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/lease_schedule.h"
#include "report/error.h"

enum renewed {
	RENEWED, /* the deadline is a later one */
	/* no answer, or a refusal that may pass: to be tried again, as long as there is time */
	RENEW_AGAIN,
	RENEW_GONE /* the lock is lost: ERROR is filled */
};

struct renewal {
	void *lock;         /* the engine's */
	int64_t lease;      /* nanoseconds, as all times here; renew() may change it */
	bool lease_changed; /* since OK */
	/* clock_boottime(): no other client can have the lock before; renew() sets it */
	int64_t deadline;
	enum lease_part at; /* LEASE_RENEW or LEASE_BEAT */
	int64_t retry;      /* between two tries */
	int64_t next;       /* moment of the next try, which rest() may make an earlier one */

	/* Try once, at most until that moment.  With RENEW_AGAIN, ERROR may be filled with the
	 * reason. */
	enum renewed (*renew)(struct renewal *renewal, int64_t until, struct error *error);
	/* Wait until that moment, protocol_released(), or an event of the engine's own.  Returns 0,
	 * or -1 with ERROR filled: the lock is lost.  NULL: there are no such events. */
	int (*rest)(struct renewal *renewal, int64_t until, struct error *error);
};

/* Say OK, and keep the lock.  FENCING_TOKEN < 0: the engine has none; SLOT < 0: no slots.  0: it
 * is to be released; -1: it is lost, with ERROR filled. */
int renewal_hold(struct renewal *renewal, int64_t fencing_token, int slot, struct error *error);

#endif
