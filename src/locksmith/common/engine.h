/* SPDX-License-Identifier: MIT */
/* locksmith/common/engine.h - what an engine, for one kind of server, gives to the common part.
 *
 * A program semlock-locksmith-NAME is src/locksmith/common/ and one engine.  main.c reads the
 * command line, says what the engine can do, calls run(), and ends the command when run() says
 * that the lock is lost. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_ENGINE_H
#define SEMLOCK_LOCKSMITH_COMMON_ENGINE_H

#include <stdbool.h>

#include "locksmith/common/options.h"
#include "report/error.h"

enum engine_outcome {
	ENGINE_TAKEN,    /* the lock is held: not of run() */
	ENGINE_RELEASED, /* semlock wants it no more; with ACTION_WHO: it is free */
	ENGINE_BUSY,
	ENGINE_FAILED /* an error is filled */
};

struct engine {
	const char *name;    /* "etcd": the program is semlock-locksmith-NAME */
	const char *schemes; /* "etcd etcds": the URLs that it takes */
	const char *words;   /* what it offers, of "shared slots order token queue-max" */

	/* Fill *url, which stays valid until exit: url_parse, or the engine's own.  Returns 0, or
	 * -1 with ERROR filled. */
	int (*parse)(const char *text, struct url *url, struct error *error);

	/* The whole life of a lock, or of ACTION_WHO: ENGINE_RELEASED or ENGINE_BUSY with
	 * everything said (OK, HELD, FREE, BUSY, WHO), or ENGINE_FAILED with ERROR filled, which
	 * main says (LOST, ERR).  With ERROR_AWAY or ERROR_SLOW in it nothing is held and nothing
	 * is left to run: main may call run() again, as long as the user waits. */
	enum engine_outcome (*run)(const struct options *options, struct error *error);

	/* After each run(), and after the command of a lost lock was ended.  STOPPED: no process
	 * runs under the lock any more.  NULL: nothing to do. */
	void (*end)(bool stopped);
};

/* The program's one. */
extern const struct engine engine;

#endif
