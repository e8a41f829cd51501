/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-s3 - until the lock is ours.  No order: each waiter looks at the object again
 * and again, with the same interval for all, or one that has just come would mostly be the first.
 *
 * A program that asks again as soon as it has let go would be the first nevertheless, as the
 * waiters sleep: of eight that did so, one had the lock 56 times in a row, and in 300 times another
 * had it 11 times.  So if the last holder had waited for the lock, and has just let it go, one that
 * comes now sleeps once before it takes it.  The holder's state says it: no waiter writes a mark,
 * and nobody sleeps for a lock that no other wants. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/s3/s3_wait.h"
#include "protocol/lease_schedule.h"

#define ANSWER (10 * SECOND) /* for one request */
#define RACE (SECOND / 20)   /* before another try that may be done at once */
#define QUICK_TRIES 4        /* the loser of a race gets a 500 from radosgw */
#define QUICK (2 * SECOND)   /* of failures in a row: those that came so soon */
#define MOST_REFUSALS 6      /* of the ETag that was just read */

enum step {
	STEP_TAKEN,
	STEP_HELD,   /* by another */
	STEP_YIELDS, /* it is free, but others may have waited longer */
	STEP_RACED,  /* another was faster, or time was short: look again */
	STEP_SILENT, /* no answer */
	STEP_FATAL
};

struct s3_waiting {
	struct s3_lock *lock;
	int refusals;    /* in a row, of one state of the object */
	int failures;    /* in a row */
	int64_t failing; /* the moment of the first of them */
	bool answered;   /* the server has once answered */
	bool yielded;    /* once is enough */
};

/* May the lock be taken, as it was last seen? */
static bool may_be_taken(const struct s3_lock *lock)
{
	const struct options *options = lock->options;
	int64_t lapses = lock->seen + lock->record.lease;

	if (lock->etag[0] == '\0' || !lock->record.held || s3_lock_is_ours(lock) ||
	    clock_boottime() >= lapses)
		return true;
	/* Without the time to see a lease pass, the server's clock has to do. */
	return (options->no_wait || options->until < lapses) && s3_lock_is_old(lock);
}

/* The next fencing token: larger than the last one, and in a new object larger than that of any
 * object before, as long as there was less than one holder a second. */
static int64_t next_token(const struct s3_lock *lock)
{
	int64_t date = lock->server.date > 0 ? lock->server.date : clock_realtime() / SECOND;

	if (s3_lock_is_ours(lock) && lock->record.held)
		return lock->record.token;
	return lock->record.token >= date ? lock->record.token + 1 : date;
}

static enum step step_of(enum s3_reply reply)
{
	return reply == S3_UNKNOWN ? STEP_SILENT : STEP_FATAL;
}

static enum step take(struct s3_waiting *waiting, int64_t until)
{
	struct s3_lock *lock = waiting->lock;
	bool created = lock->etag[0] == '\0';
	enum s3_reply reply;

	s3_lock_set_token(lock, next_token(lock));
	reply = s3_lock_write(lock, true, until);
	if (reply == S3_REFUSED) {
		if (++waiting->refusals < MOST_REFUSALS)
			return STEP_RACED;
		error_plain(&lock->server.error, ERROR_UNAVAILABLE,
		    "the server refuses its own ETag, and so cannot lock (is the bucket "
		    "versioned?)");
		return STEP_FATAL;
	}
	if (reply != S3_DONE)
		return step_of(reply);
	waiting->refusals = 0;
	reply = s3_lock_guard(lock, created, until);
	if (reply != S3_REFUSED)
		return step_of(reply);
	return clock_boottime() < lease_moment(lock->since + lock->lease, lock->lease, LEASE_ENTER)
	           ? STEP_TAKEN
	           : STEP_RACED;
}

/* One that has just come sleeps as long as the waiters do between two looks. */
static bool must_yield(const struct s3_waiting *waiting)
{
	const struct s3_lock *lock = waiting->lock;

	return !waiting->yielded && !lock->waited && !lock->options->no_wait &&
	       s3_lock_was_waited_for(lock, lock->options->interval);
}

static enum step look_and_take(struct s3_waiting *waiting)
{
	struct s3_lock *lock = waiting->lock;
	int64_t until = earlier(clock_boottime() + ANSWER, lock->options->answer_by);
	enum s3_reply reply = s3_lock_read(lock, until);

	if (reply == S3_UNKNOWN || reply == S3_FATAL)
		return step_of(reply);
	waiting->answered = true;
	if (reply == S3_DONE)
		waiting->refusals = 0;
	/* Another has held it, if only in between. */
	lock->waited = lock->waited || (waiting->yielded && reply == S3_DONE);
	if (!may_be_taken(lock)) {
		lock->waited = true;
		return STEP_HELD;
	}
	if (must_yield(waiting)) {
		waiting->yielded = true;
		return STEP_YIELDS;
	}
	return take(waiting, until);
}

/* Until the next look: an interval, or until the holder's lease has passed. */
static int64_t next_look(const struct s3_lock *lock)
{
	int64_t now = clock_boottime();

	return earlier(now + spread(lock->options->interval),
	    lock->seen + lock->record.lease + spread(RACE));
}

/* After no answer.  0: go on at *next; -1: it was too often, or the time is up. */
static int bear_silence(struct s3_waiting *waiting, int64_t *next)
{
	const struct options *options = waiting->lock->options;
	int64_t now = clock_boottime();
	char text[sizeof waiting->lock->server.error.text + 32];

	if (waiting->failures++ == 0)
		waiting->failing = now;
	if (now >= options->until)
		return -1;
	if (waiting->failures < QUICK_TRIES && now < waiting->failing + QUICK) {
		*next = now + spread(RACE);
		return 0;
	}
	if (options->no_wait || !waiting->answered)
		return -1;
	snprintf(text, sizeof text, "note=for the server: %s", waiting->lock->server.error.text);
	say_wait(text);
	*next = now + spread(options->interval);
	return 0;
}

enum engine_outcome s3_wait(struct s3_lock *lock, struct error *error)
{
	struct s3_waiting waiting = {.lock = lock};
	int64_t next = 0;

	while (!protocol_released()) {
		enum step step = look_and_take(&waiting);

		*error = lock->server.error;
		if (step == STEP_TAKEN)
			return ENGINE_TAKEN;
		if (step == STEP_FATAL || (step == STEP_SILENT && bear_silence(&waiting, &next)))
			return ENGINE_FAILED;
		if (step != STEP_SILENT)
			waiting.failures = 0;
		if (step == STEP_HELD) {
			if (lock->options->no_wait || clock_boottime() >= lock->options->until) {
				say(SAYS_BUSY " %s", lock->record.holder);
				return ENGINE_BUSY;
			}
			say_wait(lock->record.holder);
			next = next_look(lock);
		}
		if (step == STEP_YIELDS) {
			say_wait("note=for those that wait already");
			next = clock_boottime() + spread(lock->options->interval);
		}
		if (step == STEP_RACED)
			next = clock_boottime() + spread(RACE);
		loop_wait(earlier(next, lock->options->until));
	}
	return ENGINE_RELEASED;
}
