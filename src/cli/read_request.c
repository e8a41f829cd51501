/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_options.h"
#include "cli/operands.h"
#include "cli/options.h"
#include "cli/read_request.h"
#include "cli/reading.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/server/scheme.h"
#include "report/error.h"
#include "sys/memory.h"

/* ---- the method ---- */

/* Choose the method: from -m, --fcntl, --start and --length, or from a URL.  Invoked as flock, take
 * a URL for a file's name.  Refuse an empty LOCK, which is probably an unset variable: --who would
 * report it free. */
static void choose_method(struct request *request, const struct reading *reading)
{
	const uint64_t range = OPT(START) | OPT(LENGTH);
	const bool named = given(reading, OPT(METHOD) | OPT(FCNTL) | range);

	if (given(reading, OPT(METHOD)) && given(reading, OPT(FCNTL)) &&
	    request->spec.method != &method_ofd)
		die(EXIT_USAGE, "--fcntl and -m %s are mutually exclusive",
		    request->spec.method->name);
	if (!given(reading, OPT(METHOD)) && given(reading, OPT(FCNTL) | range))
		request->spec.method = &method_ofd; /* as with flock(1) */
	if (given(reading, range) && !method_can(request->spec.method, CAN_RANGE))
		die(EXIT_USAGE, "--start and --length: -m %s locks the whole file; use -m ofd",
		    request->spec.method->name);
	for (unsigned i = 0; i < request->nlocks; i++) {
		const char *name = request->locks[i].name;
		bool may_be_url = name != NULL && !request->as_flock && strchr(name, ':') != NULL;
		const struct method *method = may_be_url ? server_method(name) : NULL;

		if (name != NULL && *name == '\0')
			die(request->as_flock ? EXIT_NOTOPEN : EXIT_USAGE,
			    "LOCK is empty (unset variable?)");
		if (may_be_url && server_mistyped(name))
			die(EXIT_USAGE,
			    "%s: a URL needs \"//\" after the colon; for a file of this "
			    "name, use ./%s",
			    name, name);
		if (method != NULL && request->nlocks > 1 && !request->who)
			die(EXIT_USAGE,
			    "-f: cannot be combined with %s, a lock on a server; nest them: "
			    "semlock LOCK semlock URL COMMAND",
			    name);
		if (method != NULL && named)
			die(EXIT_USAGE,
			    "%s: a URL names a server: leave out -m, --fcntl, --start and "
			    "--length",
			    name);
		if (method != NULL && !request->who)
			request->spec.method = method;
	}
}

/* Set OPT(SHARED) in READING if any lock is shared.  The last -s or -x before a LOCK decides that
 * lock's mode. */
static void note_shared_locks(const struct request *request, struct reading *reading)
{
	if (request->who)
		return;
	reading->given &= ~OPT(SHARED);
	for (unsigned i = 0; i < request->nlocks; i++)
		if (request->locks[i].mode == SHARED)
			reading->given |= OPT(SHARED);
}

/* ---- the environment ---- */

/* Does the environment ask for -v?  SEMLOCK_VERBOSE=1 does, for instance for all calls of a CI job;
 * -q overrides it.  The environment sets no other option. */
static bool is_verbose_by_environment(void)
{
	const char *value = secure_getenv("SEMLOCK_VERBOSE");

	return value != NULL && strcmp(value, "1") == 0;
}

/* ---- the whole command line ---- */

void request_read(struct request *request, int argc, char **argv)
{
	struct reading reading = {.mode = EXCLUSIVE, .fd = -1};
	struct lock_spec named;
	char **operands;
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

	*request = (struct request){
	    .as_flock = argc > 0 && strcmp(slash == NULL ? argv[0] : slash + 1, "flock") == 0,
	    .nlocks = 1,
	    .wait = -1,
	    .queue_max = -1,
	    .busy_status = EXIT_BUSY,
	    .spec = {.method = &method_flock, .create_mode = 0666},
	};
	if (request->as_flock)
		report_as("flock");
	/* Room for a lock in every word: -fLOCK, or LOCK with --who. */
	request->locks = memory_lasting(((size_t)argc + 1) * sizeof *request->locks);
	if (request->locks == NULL)
		die(EXIT_SYSTEM, "out of memory");
	operands = argv + options_read(request, &reading, argc, argv);
	operands_read(request, &reading, operands);
	request->method_asked = given(&reading, OPT(METHOD) | OPT(FCNTL));
	choose_method(request, &reading);
	note_shared_locks(request, &reading);
	options_check(request, &reading);
	if (!request->as_flock && !request->quiet && is_verbose_by_environment())
		request->verbose = true;
	if (request->spec.slots > 0 && request->spec.method->family != ON_SERVER &&
	    !method_can(request->spec.method, CAN_RANGE))
		request->locks[0].mode = SHARED; /* each slot's holder shares the lock itself */
	request->spec.command = request->command;
	request->spec.may_be_deleted = request->as_flock || request->unlock;
	/* all other members are common to the locks */
	for (unsigned i = 0; i < request->nlocks; i++) {
		named = request->locks[i];
		request->locks[i] = request->spec;
		request->locks[i].name = named.name;
		request->locks[i].fd = named.fd;
		request->locks[i].mode = named.mode;
		request->locks[i].of_user = named.of_user;
		if (named.of_user && !request->spec.exact_mode)
			/* any user may enter root's directory: the file itself keeps other users
			 * out */
			request->locks[i].create_mode = 0600;
	}
}
