/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"

static int64_t moment(const struct renewal *renewal, enum lease_part part)
{
	return lease_moment(renewal->deadline, renewal->lease, part);
}

/* Try to renew, and set *next, the moment of the next try.  Returns -1: the lock is lost. */
static int renew(struct renewal *renewal, int64_t *next, struct error *error)
{
	*error = (struct error){.kind = ERROR_NONE};
	switch (renewal->renew(renewal, moment(renewal, LEASE_LAST), error)) {
	case RENEWED:
		say(SAYS_HELD " " FIELD_DEADLINE "%" PRId64, renewal->deadline);
		*next = moment(renewal, renewal->at);
		return 0;
	case RENEW_AGAIN:
		*next = clock_boottime() + renewal->retry;
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
	int64_t next = moment(renewal, renewal->at);

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
		if (now < next && renewal->rest == NULL)
			loop_wait(earlier(next, last));
		else if ((now < next ? renewal->rest(renewal, earlier(next, last), error)
				     : renew(renewal, &next, error)) != 0)
			return -1;
	}
	return 0;
}
