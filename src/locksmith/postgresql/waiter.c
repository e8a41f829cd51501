/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>

#include "locksmith/common/loop.h"
#include "locksmith/postgresql/place.h"
#include "locksmith/postgresql/session.h"
#include "locksmith/postgresql/waiter.h"

#define AGAIN (SECOND / 2) /* between two tries of an unreachable server */
/* between two tries of a newcomer that the server has no session for */
#define AGAIN_FULL (5 * SECOND)
/* a waiter with a place gets at least this many tries before its place lapses */
#define TRIES_LEFT 6

/* A waiter keeps its session only while at least this percentage of the server's sessions is free.
 * The free ones are for holders whose sessions have ended, and for newcomers.  The first two
 * waiters must hear of their turn, so they give up their sessions later than the others. */
enum { ROOM_FOR_FIRST = 25, ROOM_FOR_OTHERS = 50 };

/* The pauses of a waiter that is not notified of its turn.  While the queue stands still, the first
 * few look soon, and the others not much later, because the queue gets going only as the first ones
 * look in turn.  Waiters far behind may look later: those before them must be served first. */
#define LOOK_PER_PLACE (SECOND / 2)
#define LOOK_BASE (SECOND * 3 / 2)
#define LOOK_PER_FAR_PLACE (SECOND / 20)
#define LOOK_MOST (10 * SECOND)
/* After the queue has moved, the pause for each place is the time that a fast queue takes to move
 * by one place; or, if that is longer, a part of the pace seen.  It is only a part, because one
 * long command may have set that pace.  If the queue stands still again, the pause is at least half
 * the time since it stopped.  So a short halt costs a short time, and does not slow down those
 * behind. */
#define LOOK_PER_MOVING_PLACE (SECOND * 3 / 100)
enum { LOOK_PART_OF_PACE = 16, LOOK_PART_OF_HALT = 2 };

/* Return the time between two signs of life, each of which comes with a look.  This is ten seconds,
 * or less if the lease would not leave five seconds more for a second and a third try; but at least
 * two fifths of the lease.  A random part is added, so that several waiters spread. */
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

/* Return the time until the next look of a waiter that is not notified of its turn.  Where each
 * look needs a session of its own, the waiters in front look half as often.  Those far behind do
 * not, because they must notice in time when it is their turn. */
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

/* True if there is nothing to decide: more than one waiter is before us, and we shall be notified
 * of our turn, or look for it.  After a lost session, the first sign of life finds out whether the
 * new session is ours alone.  If it is, it must send LISTEN, and this returns false. */
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

/* Return the time between two tries to connect to a full server.  Waiters must not be in the way of
 * a holder that comes back, so they try seldom, but more often when their place is about to lapse.
 * A waiter that had a session must be back in five seconds (place.c, "shorten"). */
static int64_t pause_when_full(const struct pg_lock *lock)
{
	int64_t left = lock->deadline - clock_boottime(), pause = AGAIN_FULL;

	if (lock->row != PG_ROW_QUEUED || left <= 0)
		return pause;
	if (lock->presence == PG_STAYS && left > lock->place_ttl / 2)
		pause = SECOND;
	pause = earlier(pause, left / TRIES_LEFT);
	return pause < AGAIN ? AGAIN : pause;
}

/* A look got no answer.  If the server refused it because others use all sessions or the table, the
 * server was reached.  If it has no session for us, report that only once, because the server's
 * message varies with the kind of session that is still free. */
static enum look no_answer(struct pg_lock *lock, struct turn *turn)
{
	bool full = is_full(lock), noted = lock->full_noted;

	if (lock->error.kind != ERROR_AWAY)
		return LOOK_FAILED;
	if (full || session_failed_by(lock, "55P03"))
		lock->error.kind = ERROR_SLOW;
	lock->full_noted = noted || full;
	turn->at = clock_boottime() + spread(full ? pause_when_full(lock) : AGAIN);
	return full && noted && !turn->last ? LOOK_AGAIN : LOOK_FAILED;
}

/* Keep the session if the server has room for it; else close it.  Returns true if another step is
 * needed before the session can hear of our turn. */
static bool settle(struct pg_lock *lock)
{
	int least = lock->before > 1 ? ROOM_FOR_OTHERS : ROOM_FOR_FIRST;
	bool comes_by = lock->presence == PG_COMES_BY;

	if (!lock->session.ours) /* the session is the pooler's */
		return false;
	lock->presence = lock->room < least ? PG_COMES_BY : PG_STAYS;
	if (lock->presence == PG_STAYS)
		return !lock->session.listening;
	/* First let place_beat() set our row's pid to NULL: if the row named an ended session,
	 * other clients would take it for abandoned.  If that fails, keep the session; if it has
	 * ended, the next look opens another. */
	if (comes_by || place_beat(lock) == 0)
		session_close(lock);
	else
		lock->presence = PG_STAYS;
	return false;
}

/* Return when to look next, unless we hear of our turn before. */
static int64_t next_look(struct pg_lock *lock)
{
	int64_t now = clock_boottime(), next = now + between_signs(lock->place_ttl);

	if (!lock->session.listening)
		return earlier(next, now + until_look(lock));
	return lock->before <= 1 ? earlier(next, lock->lapses) : next;
}

/* Something is in the way. */
static enum look wait_on(struct pg_lock *lock, struct turn *turn)
{
	/* if the standby does not answer, report that: perhaps no holder is in the way */
	if (turn->last && place_confirm(lock, session_answer_by(lock)) != 0)
		return no_answer(lock, turn);
	snprintf(turn->who, sizeof turn->who, "%s", lock->who);
	if (turn->last)
		return LOOK_BUSY;
	lock->row = PG_ROW_QUEUED;
	if (settle(lock))
		return LOOK_AGAIN;
	turn->at = next_look(lock);
	return LOOK_BUSY;
}

enum look waiter_look(struct pg_lock *lock, struct turn *turn)
{
	bool waits = lock->row == PG_ROW_QUEUED || lock->options->wait != NEVER;
	int entered;

	if (far_from_turn(lock) && !turn->last && place_beat(lock) != 0)
		return no_answer(lock, turn);
	if (far_from_turn(lock) && !turn->last)
		return wait_on(lock, turn);
	entered = place_step(lock);
	if (entered == 0)
		return wait_on(lock, turn);
	/* A standby, if any, must confirm that we have entered.  If that takes long, the common
	 * part renews the lock before it says OK. */
	if (entered < 0 ||
	    place_confirm(lock, waits ? lock->options->answer_by : session_answer_by(lock)) != 0)
		return no_answer(lock, turn);
	return LOOK_TAKEN;
}

void waiter_rest(struct pg_lock *lock, struct turn *turn, int64_t until)
{
	if (lock->presence == PG_COMES_BY)
		loop_wait(until);
	else if (lock->session.heard || lock->db == NULL || session_wait(lock, until) != 0 ||
		 lock->session.heard)
		turn->at = 0; /* we may have heard of our turn with the last answer */
}
