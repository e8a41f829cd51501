/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-s3 - the engine: which lock it is, and how it is kept and released. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"
#include "locksmith/s3/s3_lock.h"
#include "locksmith/s3/s3_wait.h"

#define DEFAULT_TTL (30 * SECOND)
#define ANSWER (10 * SECOND)
#define RETRY (SECOND / 2)
#define RACE (SECOND / 20)

/* libcurl takes such parts out of the path that it asks for, and 8.14 signs no request that has
 * it keep them: /a/../b would be the object /b, or another bucket's. */
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

/* The bucket is a host's name. */
static int s3_parse(const char *text, struct url *url, struct error *error)
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
		    "this is no bucket's name: %.100s; the server is in AWS_ENDPOINT_URL_S3",
		    bucket);
	if (has_dots(url->path))
		return error_plain(error, ERROR_USAGE,
		    "a lock's name on S3 cannot have a part . or .. between slashes: give it "
		    "another name");
	return 0;
}

static enum engine_outcome s3_who(struct s3_lock *lock, struct error *error)
{
	enum s3_reply reply = s3_lock_read(lock, clock_boottime() + ANSWER);

	if (reply == S3_UNKNOWN || reply == S3_FATAL) {
		*error = lock->server.error;
		return ENGINE_FAILED;
	}
	if (reply == S3_ABSENT || !lock->record.held || s3_lock_is_old(lock))
		return ENGINE_RELEASED;
	say(SAYS_WHO " " FIELD_STATE "holds %s", lock->record.holder);
	return ENGINE_BUSY;
}

static enum renewed renew(struct renewal *renewal, int64_t until, struct error *error)
{
	struct s3_lock *lock = renewal->lock;
	int64_t since = lock->since;
	enum s3_reply reply;

	until = earlier(until, clock_boottime() + lock->lease / 4);
	reply = s3_lock_write(lock, true, until);
	if (reply == S3_REFUSED)
		reply = s3_lock_look_back(lock, until);
	if (lock->since > since) {
		renewal->deadline = lock->since + lock->lease;
		return RENEWED;
	}
	if (reply == S3_REFUSED)
		error_plain(error, ERROR_LOST, "it was taken over by another");
	else if (reply == S3_ABSENT)
		error_plain(error, ERROR_LOST, "its object was deleted");
	else if (reply == S3_FATAL && lock->server.error.kind == ERROR_CREATE)
		error_plain(error, ERROR_LOST, "its object was overwritten");
	else {
		*error = lock->server.error;
		return RENEW_AGAIN;
	}
	return RENEW_GONE;
}

/* Write that the lock is free.  An answer may be lost: until the lease has ended nobody else could
 * take the lock, so another's state means that ours was written before. */
static enum engine_outcome release(struct s3_lock *lock, int64_t deadline, struct error *error)
{
	bool unsure = false;

	for (;;) {
		int64_t now = clock_boottime(), until = now + lock->lease / 4;
		enum s3_reply reply = s3_lock_write(lock, false, until);

		if (reply == S3_REFUSED) {
			reply = s3_lock_look_back(lock, until);
			if (reply == S3_DONE && lock->record.held)
				continue; /* a renewal that was late */
		}
		if (reply == S3_DONE || (reply == S3_REFUSED && unsure && now < deadline)) {
			lock->holds = false;
			say(SAYS_FREE);
			return ENGINE_RELEASED;
		}
		if (reply == S3_REFUSED || reply == S3_ABSENT) {
			lock->holds = false;
			error_plain(error, ERROR_LOST,
			    reply == S3_ABSENT ? "its object had been deleted"
					       : "it had been taken over before it was released");
			return ENGINE_FAILED;
		}
		unsure = true;
		if (clock_boottime() >= deadline) {
			error_plain(error, ERROR_UNAVAILABLE,
			    "could not be released, and lapses by itself: %s",
			    lock->server.error.text);
			return ENGINE_FAILED;
		}
		loop_pause(clock_boottime() + spread(reply == S3_SAME ? RACE : RETRY));
	}
}

static enum engine_outcome s3_take(struct s3_lock *lock, struct error *error)
{
	enum engine_outcome outcome = s3_wait(lock, error);
	struct renewal renewal = {.lock = lock,
	    .lease = lock->lease,
	    .at = LEASE_RENEW,
	    .retry = RETRY,
	    .renew = renew};

	if (outcome != ENGINE_TAKEN)
		return outcome;
	renewal.deadline = lock->since + lock->lease;
	return renewal_hold(&renewal, lock->token, -1, error) == 0
	           ? release(lock, renewal.deadline, error)
	           : ENGINE_FAILED;
}

static struct s3_lock the_lock; /* too large for the stack */

static enum engine_outcome s3_run(const struct options *options, struct error *error)
{
	struct s3_lock *lock = &the_lock;
	unsigned char random[(S3_TAG - 1) / 2];

	*lock = (struct s3_lock){.options = options,
	    .lease = options->ttl > 0 ? options->ttl : DEFAULT_TTL};
	if (options->stale_given) {
		error_plain(error, ERROR_USAGE,
		    "--stale is not for S3: leases (--ttl) end by themselves");
		return ENGINE_FAILED;
	}
	random_bytes(random, sizeof random);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(lock->tag + 2 * i, 3, "%02x", random[i]);
	if (s3_open(&lock->server, options->url.host[0], options->url.path) != 0) {
		*error = lock->server.error;
		return ENGINE_FAILED;
	}
	return options->action == ACTION_WHO ? s3_who(lock, error) : s3_take(lock, error);
}

/* A lock that was taken and is not wanted, or was lost for want of an answer, does not keep others
 * waiting for the end of its lease. */
static void s3_end(bool stopped)
{
	struct s3_lock *lock = &the_lock;
	int64_t until = clock_boottime() + SECOND;

	if (stopped && lock->holds && s3_lock_look_back(lock, until) != S3_UNKNOWN &&
	    s3_lock_is_ours(lock) && lock->record.held)
		s3_lock_write(lock, false, until);
	lock->holds = false;
	s3_close(&lock->server);
}

const struct engine engine = {
    .name = "s3",
    .schemes = "s3",
    .words = "token",
    .parse = s3_parse,
    .run = s3_run,
    .end = s3_end,
};
