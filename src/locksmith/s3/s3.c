/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-s3 - the engine.  Waiters have no order.  All look at the object at the same
 * intervals: if their intervals grew, a newcomer would mostly be first.
 *
 * A program that asks again as soon as it has released the lock would still be first, because the
 * waiters sleep.  Of eight programs that did so, one got the lock 56 times in a row, and another
 * got it 11 times in 300.  So if the last holder had waited for the lock, and has just released it,
 * a newcomer sleeps once before it takes the lock.  The holder's record says that the holder had
 * waited: no waiter writes a mark, and nobody sleeps for a lock that nobody else wants. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/engine.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/s3/s3_lock.h"

#define ANSWER (10 * SECOND) /* for one request */
#define RACE (SECOND / 20)   /* before a retry that need not wait for another client */
/* radosgw answers the loser of a race with a 500, so retry the first failures in a row soon. */
#define QUICK_TRIES 4
#define QUICK (2 * SECOND)
/* give up after this many refusals in a row of an ETag that was just read */
#define MOST_REFUSALS 6

static struct s3_lock the_lock; /* too large for the stack */

static struct {
	int refusals;    /* in a row, of one state of the object */
	int failures;    /* requests without an answer, in a row */
	int64_t failing; /* when the first of them failed */
	bool yielded;    /* we have slept for the waiters: once is enough */
} looks;

/* Does PATH have a part "." or ".."?  libcurl removes such parts: /a/../b would name the object /b,
 * or another bucket's.  It can be told to keep them, but libcurl 8.14 then signs no request. */
static bool has_dots(const char *path)
{
	while (*path != '\0') {
		size_t length = strcspn(path, "/");

		if ((length == 1 || length == 2) && strspn(path, ".") >= length)
			return true;
		path += length;
		path += *path == '/';
	}
	return false;
}

/* Parse the URL TEXT.  url_parse() takes the bucket for a host's name. */
static int parse(const char *text, struct url *url, struct error *error)
{
	const char *bucket;
	size_t length;

	if (url_parse(text, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile", url,
		error) != 0)
		return -1;
	bucket = url->host[0];
	length = strlen(bucket);
	if (url->user[0] != '\0')
		return error_plain(error, ERROR_USAGE,
		    "a lock on S3 is s3://BUCKET/NAME; the login is AWS_ACCESS_KEY_ID and "
		    "AWS_SECRET_ACCESS_KEY, or a profile");
	if (url->hosts != 1 || length < 3 || length > 63 ||
	    strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") != length)
		return error_plain(error, ERROR_USAGE,
		    "invalid bucket name: %.100s (the server's address belongs in "
		    "AWS_ENDPOINT_URL_S3)",
		    bucket);
	if (has_dots(url->path))
		return error_plain(error, ERROR_USAGE,
		    "a lock's name on S3 cannot have a part . or .. between slashes: give it "
		    "another name");
	return 0;
}

static int prepare(struct options *options, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	unsigned char random[(S3_TAG - 1) / 2];

	if (parse(options->url_text, &options->url, error) != 0)
		return -1;
	lock->options = options;
	lock->lease = options->ttl > 0 ? options->ttl : engine.ttl;
	random_bytes(random, sizeof random);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(lock->tag + 2 * i, 3, "%02x", random[i]);
	if (s3_open(&lock->server, options->url.host[0], options->url.path) == 0)
		return 0;
	*error = lock->server.error;
	return -1;
}

/* May the lock be taken, going by the last look? */
static bool may_be_taken(const struct s3_lock *lock)
{
	const struct options *options = lock->options;
	int64_t lapses = lock->seen + lock->record.lease;

	if (lock->etag[0] == '\0' || !lock->record.held || s3_lock_is_ours(lock) ||
	    clock_boottime() >= lapses)
		return true;
	/* If there is no time to see the lease pass, the server's clock has to do. */
	return (options->no_wait || options->until < lapses) && s3_lock_is_old(lock);
}

/* The next fencing token: the time in seconds, or one more than the last token if that is more; if
 * we hold the lock already, its token.  In a new object, the time is larger than any token of an
 * earlier object, as long as the earlier object had less than one holder a second. */
static int64_t next_token(const struct s3_lock *lock)
{
	int64_t date = lock->server.date > 0 ? lock->server.date : clock_realtime() / SECOND;

	if (s3_lock_is_ours(lock) && lock->record.held)
		return lock->record.token;
	return lock->record.token >= date ? lock->record.token + 1 : date;
}

/* A request failed; if REPLY is S3_UNKNOWN, perhaps not for good. */
static enum look no_answer(struct turn *turn, enum s3_reply reply, struct error *error)
{
	int64_t now = clock_boottime();

	*error = the_lock.server.error;
	if (reply != S3_UNKNOWN)
		return LOOK_FAILED;
	if (looks.failures++ == 0)
		looks.failing = now;
	if (looks.failures >= QUICK_TRIES || now >= looks.failing + QUICK) {
		turn->at = now + spread(turn->options->interval);
		return LOOK_FAILED;
	}
	turn->at = now + spread(RACE);
	return LOOK_AGAIN;
}

static enum look take(struct turn *turn, int64_t until, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	bool created = lock->etag[0] == '\0';
	enum s3_reply reply;

	s3_lock_set_token(lock, next_token(lock));
	reply = s3_lock_write(lock, true, until);
	if (reply == S3_REFUSED && ++looks.refusals < MOST_REFUSALS) {
		turn->at = clock_boottime() + spread(RACE);
		return LOOK_AGAIN;
	}
	if (reply == S3_REFUSED)
		error_plain(&lock->server.error, ERROR_UNAVAILABLE,
		    "the server refuses its own ETag, and so cannot lock (is the bucket "
		    "versioned?)");
	if (reply != S3_DONE)
		return no_answer(turn, reply, error);
	looks.refusals = 0;
	reply = s3_lock_guard(lock, created, until);
	if (reply != S3_REFUSED)
		return no_answer(turn, reply, error);
	turn->token = lock->token;
	turn->deadline = lock->since + lock->lease;
	return LOOK_TAKEN;
}

/* A newcomer yields once: it sleeps as long as the waiters do between two looks. */
static bool must_yield(const struct s3_lock *lock)
{
	return !looks.yielded && !lock->waited && !lock->options->no_wait &&
	       s3_lock_was_waited_for(lock, lock->options->interval);
}

static enum look look(struct turn *turn, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	int64_t until = earlier(clock_boottime() + ANSWER, lock->options->answer_by);
	enum s3_reply reply = s3_lock_read(lock, until);
	int64_t next = clock_boottime() + spread(lock->options->interval);

	if (reply == S3_UNKNOWN || reply == S3_FATAL)
		return no_answer(turn, reply, error);
	if (reply == S3_DONE)
		looks.refusals = 0;
	/* If the object has changed since we slept for the waiters, another client has held the
	 * lock, if only between two looks. */
	lock->waited = lock->waited || (looks.yielded && reply == S3_DONE);
	if (!may_be_taken(lock)) {
		looks.failures = 0;
		lock->waited = true;
		snprintf(turn->who, sizeof turn->who, "%.511s", lock->record.holder);
		turn->at = earlier(next, lock->seen + lock->record.lease + spread(RACE));
		return LOOK_BUSY;
	}
	if (!must_yield(lock))
		return take(turn, until, error);
	looks.yielded = true;
	snprintf(turn->who, sizeof turn->who, "note=for those that wait already");
	turn->at = next;
	return LOOK_AGAIN;
}

static enum renewed renew(struct turn *turn, int64_t until, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	int64_t since = lock->since;
	enum s3_reply reply;

	until = earlier(until, clock_boottime() + lock->lease / 4);
	reply = s3_lock_write(lock, true, until);
	if (reply == S3_REFUSED)
		reply = s3_lock_look_back(lock, until);
	if (lock->since > since) {
		turn->deadline = lock->since + lock->lease;
		return RENEWED;
	}
	*error = lock->server.error;
	if (reply == S3_REFUSED)
		error_plain(error, ERROR_LOST, "it was taken over by another");
	else if (reply == S3_ABSENT)
		error_plain(error, ERROR_LOST, "its object was deleted");
	else if (reply == S3_FATAL && error->kind == ERROR_CREATE)
		error_plain(error, ERROR_LOST, "its object was overwritten");
	else
		return RENEW_AGAIN;
	return RENEW_GONE;
}

/* Has a look whose answer was lost taken the lock?  The state that we know is not ours, so read the
 * object before any write. */
static enum s3_reply look_for_ours(struct s3_lock *lock, int64_t until)
{
	enum s3_reply reply = s3_lock_look_back(lock, until);

	if (reply != S3_UNKNOWN && reply != S3_FATAL)
		lock->holds = s3_lock_is_ours(lock) && lock->record.held;
	return reply;
}

/* Write that the lock is free. */
static enum freed release(struct turn *turn, int64_t until, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	enum s3_reply reply = S3_SAME;

	if (lock->holds && !s3_lock_is_ours(lock))
		reply = look_for_ours(lock, until);
	if (!lock->holds)
		return FREED;
	if (reply == S3_UNKNOWN || reply == S3_FATAL) {
		*error = lock->server.error;
		return FREE_AGAIN;
	}
	until = earlier(until, clock_boottime() + later(lock->lease / 4, SECOND));
	lock->server.connects = 0;
	reply = s3_lock_write(lock, false, until);
	/* If the connection ends, libcurl sends the request again on its own, over a new
	 * connection: the first may have released the lock. */
	turn->unsure = turn->unsure || lock->server.connects > 0;
	if (reply == S3_REFUSED) {
		reply = s3_lock_look_back(lock, until);
		/* a renewal that had no answer was done before this write */
		if (reply == S3_DONE && lock->record.held)
			reply = s3_lock_write(lock, false, until) == S3_DONE ? S3_DONE : S3_SAME;
	}
	lock->holds = reply == S3_SAME || reply == S3_UNKNOWN || reply == S3_FATAL;
	switch (reply) {
	case S3_DONE:
		return FREED;
	case S3_REFUSED:
		error_plain(error, ERROR_LOST, "it had been taken over before it was released");
		return FREE_GONE;
	case S3_ABSENT:
		error_plain(error, ERROR_LOST, "its object had been deleted");
		return FREE_GONE;
	case S3_SAME:
		error_plain(error, ERROR_AWAY, "the server did not store the release");
		return FREE_AGAIN;
	default:
		*error = lock->server.error;
		return FREE_AGAIN;
	}
}

static enum look who(struct turn *turn, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	enum s3_reply reply = s3_lock_read(lock, clock_boottime() + ANSWER);

	(void)turn;
	*error = lock->server.error;
	if (reply == S3_UNKNOWN || reply == S3_FATAL)
		return LOOK_FAILED;
	if (reply == S3_ABSENT || !lock->record.held || s3_lock_is_old(lock))
		return LOOK_FREE;
	say(SAYS_WHO " " FIELD_STATE "holds %s", lock->record.holder);
	return LOOK_BUSY;
}

static void hang_up(void)
{
	s3_close(&the_lock.server);
}

const struct engine engine = {
    .name = "s3",
    .schemes = "s3",
    .words = "token",
    .ttl = 30 * SECOND,
    .beat = LEASE_RENEW,
    .prepare = prepare,
    .look = look,
    .renew = renew,
    .release = release,
    .who = who,
    .hang_up = hang_up,
};
