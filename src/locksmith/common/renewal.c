/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"

#define SLOWER 4

/* The time between two tries to renew, in ns. */
static int64_t retry_after(const struct turn *turn)
{
	return earlier(SECOND / 2, turn->lease / 20);
}

static int64_t moment(const struct turn *turn, enum lease_part part)
{
	return lease_moment(turn->deadline, turn->lease, part);
}

/* If CHANGED, the lease's length has changed since OK.  From then on, put it into each HELD,
 * because an earlier HELD may have been dropped when the pipe was full. */
static void say_held(const struct turn *turn, bool changed)
{
	char lease[32] = "";

	if (changed)
		snprintf(lease, sizeof lease, " " FIELD_LEASE "%" PRId64, turn->lease);
	say(SAYS_HELD " " FIELD_DEADLINE "%" PRId64 "%s", turn->deadline, lease);
}

/* When to renew after a renewal that took TOOK: early enough that the next one is done before TERM
 * even if it takes SLOWER times as long. */
static int64_t next_after(const struct turn *turn, int64_t took)
{
	int64_t latest = moment(turn, LEASE_TERM) - SLOWER * took;

	return later(clock_boottime() + retry_after(turn),
	    earlier(moment(turn, engine.beat), latest));
}

/* Report the refusal now, although a later try may succeed: semlock ends the command before the
 * last try, and would otherwise know only that the lease was not renewed. */
static void note_refusal(const struct error *error)
{
	static char noted[sizeof error->text];

	if (error->kind == ERROR_NONE || error->kind == ERROR_AWAY || error->kind == ERROR_SLOW ||
	    strcmp(error->text, noted) == 0)
		return;
	strcpy(noted, error->text);
	say(SAYS_NOTE " not renewed yet: %s", noted);
}

/* Try to renew, and set turn->at for the next try.  Returns 0, or -1 if the lock is lost, with
 * ERROR filled. */
static int renew(struct turn *turn, bool *changed, struct error *error)
{
	int64_t began = clock_boottime(), lease = turn->lease;

	*error = (struct error){.kind = ERROR_NONE};
	switch (engine.renew(turn, moment(turn, LEASE_LAST), error)) {
	case RENEWED:
		*changed = *changed || turn->lease != lease;
		say_held(turn, *changed);
		turn->at = next_after(turn, clock_boottime() - began);
		return 0;
	case RENEW_AGAIN:
		note_refusal(error);
		turn->at = clock_boottime() + retry_after(turn);
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

static void say_ok(const struct turn *turn)
{
	char fence[40] = "", number[24] = "";

	if (turn->token >= 0)
		snprintf(fence, sizeof fence, " " FIELD_TOKEN "%" PRId64, turn->token);
	if (turn->slot >= 0)
		snprintf(number, sizeof number, " " FIELD_SLOT "%d", turn->slot);
	say(SAYS_OK "%s%s " FIELD_LEASE "%" PRId64 " " FIELD_DEADLINE "%" PRId64, fence, number,
	    turn->lease, turn->deadline);
}

int renewal_hold(struct turn *turn, struct error *error)
{
	bool changed = false;

	turn->at = moment(turn, engine.beat);
	*error = (struct error){.kind = ERROR_NONE};
	say_ok(turn);
	while (!protocol_started() && !protocol_released() &&
	       clock_boottime() < moment(turn, LEASE_LAST))
		loop_turn(NULL, 0, moment(turn, LEASE_LAST));
	if (!protocol_started() && !protocol_released())
		return error_plain(error, ERROR_LOST,
		    "semlock stood still, and did not start the command in time");
	while (!protocol_released()) {
		int64_t last = moment(turn, LEASE_LAST), now = clock_boottime();

		if (now >= last)
			return lost_for_want_of_time(error);
		if (now >= turn->at) {
			if (renew(turn, &changed, error) != 0)
				return -1;
		} else if (engine.rest != NULL) {
			engine.rest(turn, earlier(turn->at, last));
		} else {
			loop_wait(earlier(turn->at, last));
		}
	}
	return 0;
}
