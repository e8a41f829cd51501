/* SPDX-License-Identifier: MIT */
/* locksmith/common/engine.h - what an engine, for one kind of server, gives to the common part.
 *
 * A program semlock-locksmith-NAME is src/locksmith/common/ and one engine.  main.c reads the
 * command line, says what the engine can do, calls run(), and ends the command when run() says
 * that the lock is lost. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_ENGINE_H
#define SEMLOCK_LOCKSMITH_COMMON_ENGINE_H

#include "locksmith/common/options.h"
#include "locksmith/common/failure.h"

#include <stdbool.h>

struct engine {
	const char *name;    /* "etcd": the program is semlock-locksmith-NAME */
	const char *schemes; /* "etcd etcds": the URLs that it takes */
	const char *words;   /* what it offers, of "shared slots order token queue-max" */

	/* Fills in *url, which stays valid until exit: url_parse, or the engine's own.  0, or -1 with *failure filled. */
	int (*parse)(const char *text, struct url *url, struct failure *failure);

	/* The whole life of a lock, or of ACTION_WHO.  Returns the exit status:
	   EXIT_RELEASED or EXIT_BUSY with everything said (OK, HELD, FREE, BUSY, WHO), or
	   another with *failure filled, which main says (LOST, ERR).  With failure_away() in it nothing
	   is held and nothing is left to run: main may call run() again, as long as the user waits. */
	int (*run)(const struct options *o, struct failure *failure);

	/* After each run(), and after the command of a lost lock was ended.  STOPPED: no process
	   runs under the lock any more.  NULL: nothing to do. */
	void (*end)(bool stopped);
};

/* The program's one. */
extern const struct engine engine;

#endif
