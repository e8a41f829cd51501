/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/place.h"
#include "locksmith/postgresql/session.h"
#include "locksmith/postgresql/waiter.h"
#include "protocol/lease_schedule.h"

#define AGAIN (SECOND / 2) /* between two tries of a server that is not there */
/* between two tries of an arrival that the server has no session for */
#define AGAIN_FULL (5 * SECOND)
/* Of a waiter that has a place, so many in what is left of its time, at least. */
#define TRIES_LEFT 6

/* A waiter keeps its session only while so many percent of the sessions are free: the rest is for
 * holders whose sessions have ended, and for arrivals.  The first two are to hear of their turn. */
enum { ROOM_FOR_FIRST = 25, ROOM_FOR_OTHERS = 50 };

/* The pauses of a waiter that nobody tells of its turn.  While the queue stands, the first few look
 * soon, and the others not much later: the queue gets going only when each of those in front has
 * looked.  Those far behind have time until those before them are served. */
#define LOOK_PER_PLACE (SECOND / 2)
#define LOOK_BASE (SECOND * 3 / 2)
#define LOOK_PER_FAR_PLACE (SECOND / 20)
#define LOOK_MOST (10 * SECOND)
/* After it has moved, for each place: the pace of a fast queue, or a part of the pace seen, which
 * may be that of one long command.  Where the queue stands again, half the time for which it has
 * stood: so a short halt costs a short time, and does not make those behind slow. */
#define LOOK_PER_MOVING_PLACE (SECOND * 3 / 100)
enum { LOOK_PART_OF_PACE = 16, LOOK_PART_OF_HALT = 2 };

/* Return the time between two signs of life, with each of which comes a look: at most six a minute,
 * if the lease leaves five seconds for a second and a third try; else two in a lease.  Several
 * waiters spread. */
static int64_t between_signs(int64_t lease)
{
	int64_t few = earlier(10 * SECOND, lease - 5 * SECOND), half = lease * 2 / 5;
	int64_t time = few > half ? few : half;

	return time + spread(time / 10);
}

/* Note whether the queue has moved since the last look. */
static void watch_pace(struct pg_lock *lock)
{
	int64_t now = clock_boottime();

	if (lock->seen_before > lock->before) {
		if (lock->moved != 0)
			lock->pace = (now - lock->moved) / (lock->seen_before - lock->before);
		lock->moved = now;
	}
	lock->seen_before = lock->before;
}

/* Return the time until a waiter looks that nobody tells of its turn.  Where each look needs a
 * session of its own, those in front look half as often; the others have to know in time, too. */
static int64_t until_look(struct pg_lock *lock)
{
	int64_t place = lock->before + 1, slower = lock->presence == PG_COMES_BY ? 2 : 1;
	int64_t soon = slower * place * LOOK_PER_PLACE;
	int64_t pause = earlier(soon, slower * LOOK_BASE + place * LOOK_PER_FAR_PLACE);

	watch_pace(lock);
	pause = earlier(pause, LOOK_MOST);
	if (lock->moved != 0) {
		int64_t halt = clock_boottime() - lock->moved;
		int64_t each = later(LOOK_PER_MOVING_PLACE, lock->pace / LOOK_PART_OF_PACE);

		pause = earlier(pause, later(slower * place * each, halt / LOOK_PART_OF_HALT));
	}
	return spread(pause);
}

/* Others are before us, and we shall hear of our turn, or look for it: nothing is to be decided.
 * After a lost session the first sign of life finds out whether the new one is ours, and is to
 * listen again. */
static bool far_from_turn(const struct pg_lock *lock)
{
	return lock->row == PG_ROW_QUEUED && lock->before > 1 && !lock->session.heard &&
	       (lock->session.listening || !lock->session.ours || lock->presence == PG_COMES_BY);
}

/* Has the server refused a session because there are too many? */
static bool is_full(const struct pg_lock *lock)
{
	return session_failed_by(lock, "53300");
}

/* Look once.  Returns 1 if we have entered, 0 if not, or -1 with lock->error filled. */
static int look(struct pg_lock *lock)
{
	const struct options *options = lock->options;
	bool waits = lock->row == PG_ROW_QUEUED || options->wait != NEVER;
	int entered;

	if (far_from_turn(lock) && place_beat(lock) != 0)
		return -1;
	if (far_from_turn(lock))
		return 0;
	entered = place_step(lock);
	if (entered <= 0)
		return entered;
	/* The standby has to confirm it.  It may take long, and our row may have lapsed meanwhile:
	 * then another step tells. */
	if (place_confirm(lock, waits ? options->answer_by : session_answer_by(lock)) != 0)
		return -1;
	return clock_boottime() < lease_moment(lock->deadline, lock->ttl, LEASE_ENTER);
}

/* May a look that has failed be repeated?  An arrival that was told no time to wait waits for a
 * server that works: one whose sessions or whose table others have. */
static bool may_look_again(const struct pg_lock *lock)
{
	const struct options *options = lock->options;

	if (lock->error.kind != ERROR_AWAY || options->no_wait ||
	    clock_boottime() >= options->until)
		return false;
	return lock->row == PG_ROW_QUEUED || options->wait != NEVER || is_full(lock) ||
	       session_failed_by(lock, "55P03");
}

/* Return the time between two tries of a server that is full.  Waiters must not be in the way of a
 * holder that comes back: they ask seldom, but the oftener, the nearer the end of their place.  A
 * waiter that had a session is to be back in five seconds (place.c, "shorten"). */
static int64_t pause_when_full(const struct pg_lock *lock)
{
	int64_t left = lock->deadline - clock_boottime(), pause = AGAIN_FULL;

	if (lock->row != PG_ROW_QUEUED || left <= 0)
		return pause;
	if (lock->presence == PG_STAYS && left > lock->ttl / 2)
		pause = SECOND;
	pause = earlier(pause, left / TRIES_LEFT);
	return pause < AGAIN ? AGAIN : pause;
}

/* Say what the server lacks, and wait for it. */
static void wait_for_server(struct pg_lock *lock)
{
	char text[sizeof lock->error.text + 32];
	int64_t pause = is_full(lock) ? pause_when_full(lock) : AGAIN;

	if (!is_full(lock) || !lock->full_noted) {
		snprintf(text, sizeof text, "note=for the server: %s", lock->error.text);
		say_wait(text);
	}
	lock->full_noted = lock->full_noted || is_full(lock);
	loop_wait(earlier(clock_boottime() + spread(pause), lock->options->until));
}

/* Keep the session if the server has room for it, or hang up.  Returns true if another step is
 * needed, so that the session hears of our turn. */
static bool settle(struct pg_lock *lock)
{
	int least = lock->before > 1 ? ROOM_FOR_OTHERS : ROOM_FOR_FIRST;
	bool comes_by = lock->presence == PG_COMES_BY;

	if (!lock->session.ours) /* the pooler's */
		return false;
	lock->presence = lock->room < least ? PG_COMES_BY : PG_STAYS;
	if (lock->presence == PG_STAYS)
		return !lock->session.listening;
	/* The row must not seem to be one whose client has gone: if that cannot be written, the
	 * session is kept, or another one is opened at once. */
	if (comes_by || place_beat(lock) == 0)
		session_close(lock);
	else
		lock->presence = PG_STAYS;
	return false;
}

/* Wait until the next look is due. */
static void wait_for_turn(struct pg_lock *lock)
{
	int64_t now = clock_boottime(), next = now + between_signs(lock->ttl);

	if (!lock->session.listening)
		next = earlier(next, now + until_look(lock));
	else if (lock->before <= 1)
		next = earlier(next, lock->lapses);
	next = earlier(next, lock->options->until);
	while (!lock->session.heard && clock_boottime() < next && !protocol_released()) {
		if (lock->presence == PG_COMES_BY)
			loop_wait(next);
		else if (lock->db == NULL || session_wait(lock, next) != 0)
			break;
	}
}

enum engine_outcome waiter_acquire(struct pg_lock *lock)
{
	const struct options *options = lock->options;

	while (!protocol_released()) {
		int entered = look(lock);

		if (entered > 0)
			return ENGINE_TAKEN;
		if (entered < 0) {
			if (!may_look_again(lock))
				return protocol_released() ? ENGINE_RELEASED : ENGINE_FAILED;
			wait_for_server(lock);
			continue;
		}
		if (lock->token[0] != '\0')
			continue;
		if (options->no_wait)
			return ENGINE_BUSY;
		lock->row = PG_ROW_QUEUED;
		say_wait(lock->who);
		if (clock_boottime() < options->until && settle(lock))
			continue;
		wait_for_turn(lock);
		if (clock_boottime() >= options->until)
			return ENGINE_BUSY;
	}
	return ENGINE_RELEASED;
}
