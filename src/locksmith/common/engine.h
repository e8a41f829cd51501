/* SPDX-License-Identifier: MIT */
/* locksmith/common/engine.h - what an engine, for one kind of server, gives to the common part.
 *
 * A program semlock-locksmith-NAME is src/locksmith/common/ and one engine.  The common part keeps
 * the time and talks to semlock.  It decides when to look, renew, release and give up, and writes
 * all lines, except that the engine writes WHO, some NOTE lines and, with ftp's --no-wait, WAIT.
 * The engine asks the server.  In all functions but rest(), it sleeps only until the server
 * answers.  The functions, in the order of their calls, and the file that calls them:
 *
 *   prepare                                        main.c
 *   look .. rest .. look .. TAKEN                  wait.c
 *   OK, START, rest .. renew .. rest               renewal.c
 *   release                                        release.c
 *   hang_up                                        main.c
 *
 * A program holds one lock, so an engine keeps its state in static variables. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_ENGINE_H
#define SEMLOCK_LOCKSMITH_COMMON_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/common/options.h"
#include "protocol/lease_schedule.h"
#include "report/error.h"

/* What the common part and the engine tell each other, apart from what the functions return.  All
 * moments are those of clock_boottime(), all times are in nanoseconds. */
struct turn {
	const struct options *options;

	/* This look is the last one.  wait.c sets it before look() when the time is over; the
	 * engine sets it when its own answer is final (--queue-max). */
	bool last;

	/* An earlier request of ours may have removed the lock.  So FREE_GONE need not mean that
	 * the lock was lost.  release.c sets this before release() if an earlier release() was not
	 * answered.  The engine sets it if libcurl may have sent the request twice, as it does on
	 * its own when a connection ends. */
	bool unsure;

	/* Set by the engine. */
	char who[512];    /* what is in the way, in the words of a WAIT line */
	int64_t at;       /* when to look or renew next; rest() may set it to 0 */
	int64_t deadline; /* until then, no other client can take the lock */
	int64_t lease;    /* length of the lease; it may change while the lock is held */
	int64_t token;    /* fencing token; -1: none */
	int slot;         /* -1: none */
};

enum look {
	LOOK_TAKEN, /* the lock is ours until turn->deadline; a further look says so again */
	LOOK_BUSY,  /* turn->who holds it: look again at turn->at, or when rest() says so */
	LOOK_FREE,  /* for who() only */
	/* Neither taken nor busy: look again at turn->at (0: at once).  turn->who says why, or is
	 * "".  If the reason is that the server did not answer, ERROR is filled. */
	LOOK_AGAIN,
	/* ERROR is filled.  ERROR_AWAY, ERROR_SLOW: another look may succeed; with ERROR_SLOW, the
	 * server was reached.  Any other kind: another look would fail the same way. */
	LOOK_FAILED
};

enum renewed {
	RENEWED, /* turn->deadline has moved */
	/* No answer, or a refusal that may pass: try again while there is time.  ERROR may hold the
	 * reason. */
	RENEW_AGAIN,
	RENEW_GONE /* the lock is lost; ERROR is filled.  A further look starts anew */
};

enum freed {
	FREED,     /* the server keeps nothing of ours */
	FREE_GONE, /* the lock was not there; ERROR says why */
	/* ERROR is filled.  ERROR_AWAY, ERROR_SLOW: try again; any other kind: the server has
	 * refused, and would refuse again */
	FREE_AGAIN
};

struct engine {
	const char *name;     /* "etcd": the program is semlock-locksmith-NAME */
	const char *schemes;  /* "etcd etcds": the URLs that it takes */
	const char *words;    /* what it offers, of "shared slots order token queue-max" */
	bool stale;           /* it accepts --stale */
	int64_t ttl;          /* length of the lease without --ttl */
	enum lease_part beat; /* when to renew: LEASE_RENEW, or LEASE_BEAT */

	/* Read the URL, the environment and the login, without asking a server.  Returns 0, or -1
	 * with ERROR filled; then only hang_up() is called. */
	int (*prepare)(struct options *options, struct error *error);

	/* Ask for the lock, or do what our place in its queue needs next.  Connects anew if
	 * necessary.  Returns by options->answer_by, and soon after protocol_released().  It
	 * returns later only if it would otherwise leave behind a lock that no lease ends. */
	enum look (*look)(struct turn *turn, struct error *error);

	/* Sleep until the moment UNTIL or semlock's next line, and listen to the server.  If the
	 * server says something that makes a look or a renewal due, set turn->at to 0.  Called
	 * after LOOK_BUSY and while the lock is held.  NULL: the server says nothing unasked. */
	void (*rest)(struct turn *turn, int64_t until);

	/* Renew the lock; return by the moment UNTIL. */
	enum renewed (*renew)(struct turn *turn, int64_t until, struct error *error);

	/* Remove the lock, our place in the queue, and what an unanswered look may have left.  If
	 * we have none of these, return FREED.  Leave alone what is another client's.  Returns by
	 * the moment UNTIL, or earlier if another try may do better. */
	enum freed (*release)(struct turn *turn, int64_t until, struct error *error);

	/* Say WHO for each holder (FIELD_STATE "holds") and waiter ("waits").  Returns LOOK_FREE,
	 * LOOK_BUSY or LOOK_FAILED. */
	enum look (*who)(struct turn *turn, struct error *error);

	/* Close the connections. */
	void (*hang_up)(void);
};

/* The program's engine. */
extern const struct engine engine;

#endif
