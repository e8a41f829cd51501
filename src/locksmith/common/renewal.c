/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"

#define SLOWER 4

static int64_t moment(const struct renewal *renewal, enum lease_part part)
{
	return lease_moment(renewal->deadline, renewal->lease, part);
}

/* A lease of another length than in OK is said in each line: one may be dropped for want of room.
 */
static void say_held(const struct renewal *renewal)
{
	char lease[32] = "";

	if (renewal->lease_changed)
		snprintf(lease, sizeof lease, " " FIELD_LEASE "%" PRId64, renewal->lease);
	say(SAYS_HELD " " FIELD_DEADLINE "%" PRId64 "%s", renewal->deadline, lease);
}

/* After a renewal that took so long: the next one may take SLOWER times as long, and is done before
 * TERM all the same. */
static int64_t next_after(const struct renewal *renewal, int64_t took)
{
	int64_t latest = moment(renewal, LEASE_TERM) - SLOWER * took;

	return later(clock_boottime() + renewal->retry,
	    earlier(moment(renewal, renewal->at), latest));
}

/* Try to renew, and set the moment of the next try.  Returns -1: the lock is lost. */
static int renew(struct renewal *renewal, struct error *error)
{
	int64_t began = clock_boottime(), lease = renewal->lease;

	*error = (struct error){.kind = ERROR_NONE};
	switch (renewal->renew(renewal, moment(renewal, LEASE_LAST), error)) {
	case RENEWED:
		renewal->lease_changed = renewal->lease_changed || renewal->lease != lease;
		say_held(renewal);
		renewal->next = next_after(renewal, clock_boottime() - began);
		return 0;
	case RENEW_AGAIN:
		renewal->next = clock_boottime() + renewal->retry;
		return 0;
	default:
		return -1;
	}
}

static int lost_for_want_of_time(struct error *error)
{
	error->kind = ERROR_LOST;
	return error->text[0] != '\0'
	           ? -1
	           : error_plain(error, ERROR_LOST, "the server did not answer in time");
}

static void say_ok(const struct renewal *renewal, int64_t fencing_token, int slot)
{
	char fence[40] = "", number[24] = "";

	if (fencing_token >= 0)
		snprintf(fence, sizeof fence, " " FIELD_TOKEN "%" PRId64, fencing_token);
	if (slot >= 0)
		snprintf(number, sizeof number, " " FIELD_SLOT "%d", slot);
	say(SAYS_OK "%s%s " FIELD_LEASE "%" PRId64 " " FIELD_DEADLINE "%" PRId64, fence, number,
	    renewal->lease, renewal->deadline);
}

int renewal_hold(struct renewal *renewal, int64_t fencing_token, int slot, struct error *error)
{
	renewal->next = moment(renewal, renewal->at);
	*error = (struct error){.kind = ERROR_NONE};
	say_ok(renewal, fencing_token, slot);
	while (!protocol_started() && !protocol_released() &&
	       clock_boottime() < moment(renewal, LEASE_LAST))
		loop_turn(NULL, 0, moment(renewal, LEASE_LAST));
	if (!protocol_started() && !protocol_released())
		return error_plain(error, ERROR_LOST,
		    "semlock stood still, and did not start the command in time");
	while (!protocol_released()) {
		int64_t last = moment(renewal, LEASE_LAST), now = clock_boottime();

		if (now >= last)
			return lost_for_want_of_time(error);
		if (now < renewal->next && renewal->rest == NULL)
			loop_wait(earlier(renewal->next, last));
		else if ((now < renewal->next
				 ? renewal->rest(renewal, earlier(renewal->next, last), error)
				 : renew(renewal, error)) != 0)
			return -1;
	}
	return 0;
}
