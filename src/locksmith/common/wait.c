/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/wait.h"

#define AWAY_PAUSE SECOND /* before the next look at an absent server, unless turn->at is set */
#define LATE_PAUSE (SECOND / 20)
#define LATE_RENEWAL (10 * SECOND)

/* May another try reach the server? */
static bool is_away(const struct error *error)
{
	return error->kind == ERROR_AWAY || error->kind == ERROR_SLOW;
}

/* ---- too late to enter ---- */

/* Is so little of the lease left that semlock would soon end the command? */
static bool is_late(const struct turn *turn)
{
	return clock_boottime() >= lease_moment(turn->deadline, turn->lease, LEASE_ENTER);
}

/* The server has given us the lock.  If its answer came late, renew the lock before the command
 * starts. */
static enum look enter(struct turn *turn, struct error *error)
{
	int64_t until = earlier(clock_boottime() + LATE_RENEWAL, turn->options->answer_by);
	struct error reason = {.kind = ERROR_NONE};

	if (!is_late(turn) || (engine.renew(turn, until, &reason) == RENEWED && !is_late(turn)))
		return LOOK_TAKEN;
	/* Not ERROR_LOST: semlock was never told that it holds the lock. */
	error_plain(error, ERROR_SLOW, "the server answered too late to enter%s%.300s",
	    reason.text[0] != '\0' ? ": " : "", reason.text);
	turn->at = clock_boottime() + spread(LATE_PAUSE);
	return LOOK_AGAIN;
}

/* ---- the end of a wait ---- */

/* Does the wait end with this answer?  BUSY ends it only if this look was the last (turn->last):
 * otherwise the lock may have become free since.
 *
 * With --wait=SECS, wait for an absent server as for a lock.  With no limit, do so only if the
 * server was REACHED before: a mistyped host name would be waited for forever. */
static bool is_final(const struct turn *turn, enum look look, const struct error *error,
    bool reached)
{
	const struct options *options = turn->options;
	int64_t now = clock_boottime();

	switch (look) {
	case LOOK_BUSY:
		return turn->last;
	case LOOK_AGAIN:
		return now >= options->answer_by;
	case LOOK_FAILED:
		return turn->last || now >= options->until || !is_away(error) ||
		       !(reached || options->wait != NEVER);
	default: /* LOOK_TAKEN */
		return true;
	}
}

/* The time is over, and the last look found the lock neither ours nor busy. */
static enum look give_up(struct turn *turn, const struct error *error)
{
	if (error->kind != ERROR_NONE)
		return LOOK_FAILED;
	if (turn->who[0] == '\0')
		snprintf(turn->who, sizeof turn->who, "note=for others that come at the same time");
	return LOOK_BUSY;
}

/* Sleep until the next look, which is the last one when the time is over. */
static void rest(struct turn *turn, enum look look)
{
	const struct options *options = turn->options;
	int64_t end = turn->last ? options->answer_by : options->until;

	while (clock_boottime() < earlier(turn->at, end) && !protocol_released())
		if (look == LOOK_BUSY && engine.rest != NULL)
			engine.rest(turn, earlier(turn->at, end));
		else
			loop_wait(earlier(turn->at, end));
}

/* ---- the wait ---- */

static enum look look_once(struct turn *turn, struct error *error)
{
	enum look look;

	turn->last = turn->options->no_wait || clock_boottime() >= turn->options->until;
	turn->at = 0;
	turn->who[0] = '\0';
	*error = (struct error){.kind = ERROR_NONE};
	look = engine.look(turn, error);
	return look == LOOK_TAKEN ? enter(turn, error) : look;
}

static void say_what_is_in_the_way(struct turn *turn, enum look look, const struct error *error)
{
	if (look == LOOK_FAILED) {
		snprintf(turn->who, sizeof turn->who, "note=for the server: %s", error->text);
		if (turn->at == 0)
			turn->at = clock_boottime() + spread(AWAY_PAUSE);
	}
	/* With -n, semlock takes WAIT for a promise of an answer, for which it waits without a
	 * limit: do not send WAIT. */
	if (turn->who[0] != '\0' && !turn->options->no_wait)
		say_wait(turn->who);
}

enum look wait_for_lock(struct turn *turn, struct error *error)
{
	bool reached = false, patient = !turn->options->no_wait;

	for (;;) {
		enum look look = look_once(turn, error);

		reached = reached || error->kind == ERROR_NONE || error->kind == ERROR_SLOW;
		if (is_final(turn, look, error, reached))
			return look == LOOK_AGAIN ? give_up(turn, error) : look;
		if (!protocol_released() || !patient) {
			say_what_is_in_the_way(turn, look, error);
			rest(turn, look);
		}
		if (protocol_released() && patient)
			return LOOK_AGAIN;
	}
}
