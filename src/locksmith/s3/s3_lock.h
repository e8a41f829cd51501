/* SPDX-License-Identifier: MIT */
/* locksmith/s3/s3_lock.h - a lock on an S3 server: one small object.
 *
 *	semlock 1 state=held token=1764107203 beat=4 lease=30000000000 tag=4b0e... etag=quoted
 *	    waited=no mode=exclusive pid=4242 host=web1 since=1764107203 note=./job
 *
 * The object is never deleted, and only conditional writes change it.  The first write has the
 * condition that there is no object; each later write, that the object still has the ETag that its
 * writer has seen.  Because of tag and beat, no two states of the object are the same.  So no ETag
 * comes back, and a writer that succeeds has seen the last state.
 *
 * A holder counts its lease from when it sent the write, and a waiter from the answer that first
 * showed the write, each by its own clock. */
#ifndef SEMLOCK_LOCKSMITH_S3_S3_LOCK_H
#define SEMLOCK_LOCKSMITH_S3_S3_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/common/options.h"
#include "locksmith/s3/s3_request.h"

#define S3_TAG 33 /* 32 hexadecimal digits */

struct s3_record {
	bool held;
	int64_t token;
	int64_t beat;
	int64_t lease; /* nanoseconds */
	char tag[S3_TAG];
	bool bare;        /* its writer found that the server compares ETags without their quotes */
	bool waited;      /* its writer did not get the lock at once: others may wait still */
	char holder[512]; /* the fields of a WAIT line */
};

struct s3_lock {
	const struct options *options;
	struct s3_server server; /* with the error of the last request */
	int64_t lease;           /* nanoseconds, as all times here but those of the server */
	char tag[S3_TAG];        /* ours, random */
	int64_t beat;            /* of our last write */
	int64_t token;           /* ours */
	bool waited;             /* another client held the lock after we had asked for it */
	char holder[400];        /* what others are told of us, after pid= */

	/* The state of the object that we last saw or wrote. */
	char etag[S3_ETAG]; /* "": there is no object */
	struct s3_record record;
	int64_t seen; /* the moment of the answer that first showed this state */
	/* in seconds: how long ago it had changed when we read it, by the server's clock; -1:
	 * unknown */
	int64_t age;

	/* The form in which the server takes an ETag. */
	bool bare;   /* the server takes an ETag without its quotes */
	bool learnt; /* a write with this form has succeeded */

	/* Our writes. */
	int64_t since;   /* when the last write that is known to be done was sent */
	int64_t unknown; /* when the first write after that one was sent; 0: there is none */
	bool holds;      /* a write of ours that takes the lock may have been done */
};

/* Read the object, at most until the moment UNTIL.  Returns S3_DONE, or S3_SAME if it is unchanged;
 * then record, etag, seen and age are set.  S3_ABSENT: there is no object.  S3_UNKNOWN or S3_FATAL:
 * lock->server.error is filled, with ERROR_CREATE if the object is not a lock. */
enum s3_reply s3_lock_read(struct s3_lock *lock, int64_t until);

/* Write our state, HELD or free, if the object is as we last saw it, at most until the moment
 * UNTIL.  S3_DONE: lock->since is when this write was sent; or if an earlier write that had no
 * answer was done in its place, when the first such write was sent.  S3_REFUSED: the object has
 * changed.  S3_UNKNOWN, S3_FATAL: lock->server.error is filled. */
enum s3_reply s3_lock_write(struct s3_lock *lock, bool held, int64_t until);

/* Call this after a refused write: an earlier write that got no answer may have succeeded.
 * S3_DONE: it has, and record has our tag; lock->since is when the first such write was sent.
 * S3_SAME: the object still has our state from before that write.  S3_REFUSED: the object is
 * another client's.  S3_ABSENT, S3_UNKNOWN, S3_FATAL: as s3_lock_read(). */
enum s3_reply s3_lock_look_back(struct s3_lock *lock, int64_t until);

/* While we hold the lock, try writes that the server must refuse: one on condition that the object
 * has an ETag that no object has, and with CREATED, one on condition that the object is absent.
 * S3_REFUSED: all is well.  S3_DONE: the server ignores conditions, and lock->server.error says
 * so.  S3_UNKNOWN, S3_FATAL. */
enum s3_reply s3_lock_guard(struct s3_lock *lock, bool created, int64_t until);

/* Set the fencing token, and what others are told of us, from now on. */
void s3_lock_set_token(struct s3_lock *lock, int64_t token);

/* Has the object our tag? */
bool s3_lock_is_ours(const struct s3_lock *lock);

/* True if the lock was released at most NS nanoseconds ago, by a holder that had waited for it.
 * The server's two dates say when: that of its answer, and that of the object's last change.  They
 * are in whole seconds, so two seconds more count, too. */
bool s3_lock_was_waited_for(const struct s3_lock *lock, int64_t ns);

/* True if, by the same two dates, the last write is so old that the holder has lost the lock,
 * whatever the holder's own clock says. */
bool s3_lock_is_old(const struct s3_lock *lock);

#endif
