#include <config.h>

#include <stddef.h>
#include <string.h>

#include "sys/deadline.h"
#include "report/status_fd.h"
#include "report/exitcode.h"
#include "methods/server/server.h"
#include "report/error.h"
#include "cli/check_options.h"

/* A URL names a server, and no method beside.  By the name flock there are only files. */
static void choose_by_url(struct request *request, const struct reading *reading)
{
	bool named = reading->method_named || reading->fcntl_asked || reading->range_asked;

	for (unsigned i = 0; i < request->nlocks && !request->as_flock; i++) {
		const char *name = request->locks[i].name;
		const struct method *method = name == NULL ? NULL : server_method(name);

		if (name != NULL && server_mistyped(name))
			die(EXIT_USAGE, "%s: a URL has two slashes after its colon; a file of this "
					"name is ./%s", name, name);
		if (method != NULL && request->nlocks > 1 && !request->who)
			die(EXIT_USAGE,
			    "-f: %s is on a server, and -f is for this machine; one in the other: "
			    "semlock LOCK semlock URL COMMAND", name);
		if (method != NULL && named)
			die(EXIT_USAGE, "%s: a URL names a server: leave out -m, --fcntl, --start and "
					"--length", name);
		if (method != NULL && !request->who)
			request->method = method;
	}
}

static void choose_method(struct request *request, const struct reading *reading)
{
	const struct method *ofd = method_named("ofd");

	if (reading->fcntl_asked && (!reading->method_named || request->method != ofd)) {
		if (reading->method_named)
			die(EXIT_USAGE, "--fcntl and -m %s are two methods: choose one",
			    request->method->name);
		request->method = ofd;
	} else if (reading->range_asked && !reading->method_named) {
		request->method = ofd; /* flock(1): a range means fcntl */
	}
	if (reading->range_asked && (request->method->can & CAN_RANGE) == 0)
		die(EXIT_USAGE, "--start and --length: -m %s locks the whole file; use -m ofd",
		    request->method->name);
}

static void refuse(bool bad, const char *reason)
{
	if (bad)
		die(EXIT_USAGE, "%s", reason);
}

/* A lock that is a name in a directory is there or is not. */
static void refuse_of_files(const struct request *request)
{
	refuse(request->init && (request->method->can & NEEDS_INIT) == 0,
	    "--init: only -m rename has a token that must be there");
	refuse(request->stale > 0 && (request->method->can & (LEAVES_RECORD | ON_SERVER)) == 0,
	    "--stale: the kernel frees this lock when its holder dies; only a lock made of files "
	    "can be stale");
	refuse(request->on_lost != 0 && (request->method->can & (LEAVES_RECORD | ON_SERVER)) == 0,
	    "--on-lost: nobody can take this lock away from its holder");
	if ((request->method->can & LEAVES_RECORD) == 0)
		return;
	refuse(request->locks[0].name == NULL,
	    "-m excl, link, mkdir, rename and symlink lock a name, not a descriptor: name LOCK and "
	    "a command");
	for (unsigned i = 0; i < request->nlocks; i++)
		refuse(request->locks[i].mode == SHARED,
		    "-s: a lock made of files has one holder; use -m flock, ofd or posix");
	refuse(request->slots > 0,
	    "-j: a lock made of files has one holder; use -m flock, ofd or posix");
	refuse(request->exact_mode && request->method == method_named("symlink"),
	    "--mode: a symbolic link has no permissions");
	refuse(request->become, "-F: somebody must stay to remove the lock file; leave it out");
}

/* What a server has nothing to do with, or semlock cannot know of it. */
static void refuse_of_servers(const struct request *request)
{
	bool on_server = (request->method->can & ON_SERVER) != 0;

	refuse(request->ttl > 0 && !on_server, "--ttl: only a lock on a server has a lease");
	refuse(request->ttl > 0 && request->ttl < 2 * SECOND, "--ttl: a lease lasts 2 seconds at least");
	if (!on_server)
		return;
	refuse(request->become, "-F: somebody must stay to watch the lease; leave it out");
	refuse(request->remove, "--rm: on a server nothing is left behind that could be removed");
	refuse(request->exact_mode, "--mode: on a server semlock makes no file");
	refuse(request->preempt != PREEMPT_NOT,
	    "--replace and --toggle: the holder of a lock on a server is not within reach");
	refuse(request->on_lost != 0,
	    "--on-lost: when a lock on a server is lost, the command is stopped in any case");
}

/* What cannot be honoured is refused, never ignored. */
static void refuse_preemption(const struct request *request)
{
	refuse(request->nonblocking,
	    "-n with --replace or --toggle: to stop the holder takes time; use -w");
	refuse(request->nlocks > 1 || request->slots > 0,
	    "--replace and --toggle stop the holder of one lock: leave out -f and -j");
	refuse(request->preempt == PREEMPT_TOGGLE && request->command == NULL,
	    "--toggle: there is no command to switch on");
	refuse(request->unlock, "-u with --replace or --toggle makes no sense");
}

static void refuse_of_holding(const struct request *request, const struct reading *reading)
{
	if (!request->hold)
		return;
	refuse(request->command != NULL,
	    "--hold: no command is run; it holds LOCK until the end of standard input");
	refuse(request->locks[0].name == NULL, "--hold: name a LOCK; a descriptor is the caller's to hold");
	refuse(request->become || request->nested || request->unlock || request->preempt == PREEMPT_TOGGLE,
	    "--hold goes with none of -F, -u, --nested and --toggle");
	refuse(reading->limited, "--hold and --run-timeout: end its standard input instead");
}

static void refuse_nonsense(const struct request *request, const struct reading *reading)
{
	bool by_fd = request->locks[0].name == NULL;
	unsigned can = request->method->can;

	refuse(request->range.length > INT64_MAX - request->range.start,
	    "--start and --length: no file has so many bytes");
	refuse(request->json && !request->who, "--json goes with --who");
	refuse(request->check && (request->who || reading->acts || request->nlocks != 1),
	    "--check looks at one LOCK: beside it there may be -m, --fcntl and --name, and nothing "
	    "else");
	refuse(request->who && reading->acts,
	    "--who only looks: beside it there may be --json, -m, --fcntl and --name, and nothing "
	    "else");
	refuse_of_files(request);
	refuse_of_servers(request);
	refuse_of_holding(request, reading);
	refuse(request->become && request->close_fd,
	    "-F and -o: the command would close its own lock; leave one out");
	refuse(request->become && request->remove,
	    "-F and --rm: nobody is left to remove the file; leave one out");
	refuse(request->become && reading->limited,
	    "-F and --run-timeout: nobody is left to stop the command; leave one out");
	refuse(reading->limited && request->command == NULL && !request->who,
	    "--run-timeout: there is no command to stop");
	refuse(request->signal != 0 && !reading->limited, "--signal goes with --run-timeout");
	refuse(reading->kills && !reading->limited && request->preempt == PREEMPT_NOT,
	    "--kill-after goes with --run-timeout, --replace and --toggle");
	refuse(reading->name != NULL && reading->fd_given,
	    "--name and --fd are two locks: choose one");
	refuse(request->nested && (by_fd || request->nlocks > 1),
	    "--nested: only together with one LOCK and a command");
	refuse(request->unlock && !by_fd && !request->as_flock,
	    "-u is for descriptors: semlock -u 8; a command's lock ends with the command");
	refuse(by_fd && (can & CAN_FD) == 0,
	    "-m posix: the lock would be semlock's own and end with it; use -m ofd, which "
	    "excludes the same programs");
	refuse(by_fd && request->remove, "--rm: a descriptor says nothing of the file's name");
	refuse(by_fd && request->exact_mode, "--mode: there is no file to create");
	refuse(by_fd && request->nlocks > 1, "-f: only together with LOCK and a command");
	refuse(request->slots > 0 && reading->mode_given && reading->mode == SHARED,
	    "-j and -s: a slot is held by one; leave one out");
	refuse(request->slots > 0 && request->nlocks > 1,
	    "-j and -f: several locks are whole ones; leave one out");
	refuse(request->slots > 0 && request->range.length > 0 &&
		   request->range.length < (off_t)request->slots,
	    "-j: each slot is a byte, and --length has room for fewer");
}

/* "--who" of an unset variable must not be told that it is free. */
static void refuse_empty_names(const struct request *request)
{
	for (unsigned i = 0; i < request->nlocks; i++)
		if (request->locks[i].name != NULL && *request->locks[i].name == '\0')
			die(request->as_flock ? EXIT_NOTOPEN : EXIT_USAGE, "LOCK is an empty word: is a variable not set?");
}

void rules_apply(struct request *request, const struct reading *reading)
{
	refuse_empty_names(request);
	choose_method(request, reading);
	choose_by_url(request, reading);
	refuse_nonsense(request, reading);
	if (request->preempt != PREEMPT_NOT)
		refuse_preemption(request);
}
