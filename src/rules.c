#include <config.h>

#include <stddef.h>
#include <string.h>

#include "deadline.h"
#include "events.h"
#include "exitcode.h"
#include "methods/remote.h"
#include "report.h"
#include "rules.h"

/* A URL names a server, and no method beside.  By the name flock there are only files. */
static void choose_by_url(struct options *options, const struct reading *reading)
{
	bool named = reading->method_named || reading->fcntl_asked || reading->range_asked;

	for (unsigned i = 0; i < options->nlocks && !options->as_flock; i++) {
		const char *name = options->locks[i].name;
		const struct method *method = name == NULL ? NULL : remote_method(name);

		if (method != NULL && options->nlocks > 1 && !options->who)
			die(EXIT_USAGE,
			    "-f: %s is on a server, and -f is for this machine; one in the other: "
			    "semlock LOCK semlock URL COMMAND", name);
		if (method != NULL && named)
			die(EXIT_USAGE, "%s: a URL names a server: leave out -m, --fcntl, --start and "
					"--length", name);
		if (method != NULL && !options->who)
			options->method = method;
	}
}

static void choose_method(struct options *options, const struct reading *reading)
{
	const struct method *ofd = method_named("ofd");

	if (reading->fcntl_asked && (!reading->method_named || options->method != ofd)) {
		if (reading->method_named)
			die(EXIT_USAGE, "--fcntl and -m %s are two methods: choose one",
			    options->method->name);
		options->method = ofd;
	} else if (reading->range_asked && !reading->method_named) {
		options->method = ofd; /* flock(1): a range means fcntl */
	}
	if (reading->range_asked && (options->method->can & CAN_RANGE) == 0)
		die(EXIT_USAGE, "--start and --length: -m %s locks the whole file; use -m ofd",
		    options->method->name);
}

static void refuse(bool bad, const char *reason)
{
	if (bad)
		die(EXIT_USAGE, "%s", reason);
}

/* A lock that is a name in a directory is there or is not. */
static void refuse_of_files(const struct options *options)
{
	refuse(options->init && (options->method->can & KEEPS_TOKEN) == 0,
	    "--init: only -m rename has a token that must be there");
	refuse(options->stale > 0 && (options->method->can & (LEAVES_RECORD | ON_SERVER)) == 0,
	    "--stale: the kernel frees this lock when its holder dies; only a lock made of files "
	    "can be stale");
	refuse(options->on_lost != 0 && (options->method->can & (LEAVES_RECORD | ON_SERVER)) == 0,
	    "--on-lost: nobody can take this lock away from its holder");
	if ((options->method->can & LEAVES_RECORD) == 0)
		return;
	refuse(options->locks[0].name == NULL,
	    "-m excl, link, mkdir, rename and symlink lock a name, not a descriptor: name LOCK and "
	    "a command");
	for (unsigned i = 0; i < options->nlocks; i++)
		refuse(options->locks[i].mode == SHARED,
		    "-s: a lock made of files has one holder; use -m flock, ofd or posix");
	refuse(options->slots > 0,
	    "-j: a lock made of files has one holder; use -m flock, ofd or posix");
	refuse(options->exact_mode && options->method == method_named("symlink"),
	    "--mode: a symbolic link has no permissions");
	refuse(options->become, "-F: somebody must stay to remove the lock file; leave it out");
}

/* What a server has nothing to do with, or semlock cannot know of it. */
static void refuse_of_servers(const struct options *options)
{
	bool on_server = (options->method->can & ON_SERVER) != 0;

	refuse(options->ttl > 0 && !on_server, "--ttl: only a lock on a server has a lease");
	refuse(options->ttl > 0 && options->ttl < 2 * SECOND, "--ttl: a lease lasts 2 seconds at least");
	if (!on_server)
		return;
	refuse(options->become, "-F: somebody must stay to watch the lease; leave it out");
	refuse(options->remove, "--rm: on a server nothing is left behind that could be removed");
	refuse(options->exact_mode, "--mode: on a server semlock makes no file");
	refuse(options->steer != STEER_NOT,
	    "--replace and --toggle: the holder of a lock on a server is not within reach");
	refuse(options->on_lost != 0,
	    "--on-lost: when a lock on a server is lost, the command is stopped in any case");
}

/* What cannot be honoured is refused, never ignored. */
static void refuse_steering(const struct options *options)
{
	refuse(options->nonblocking,
	    "-n with --replace or --toggle: to stop the holder takes time; use -w");
	refuse(options->nlocks > 1 || options->slots > 0,
	    "--replace and --toggle stop the holder of one lock: leave out -f and -j");
	refuse(options->steer == STEER_TOGGLE && options->command == NULL,
	    "--toggle: there is no command to switch on");
	refuse(options->unlock, "-u with --replace or --toggle makes no sense");
}

static void refuse_of_holding(const struct options *options, const struct reading *reading)
{
	if (!options->hold)
		return;
	refuse(options->command != NULL,
	    "--hold: no command is run; it holds LOCK until the end of standard input");
	refuse(options->locks[0].name == NULL, "--hold: name a LOCK; a descriptor is the caller's to hold");
	refuse(options->become || options->nested || options->unlock || options->steer == STEER_TOGGLE,
	    "--hold goes with none of -F, -u, --nested and --toggle");
	refuse(reading->limited, "--hold and --run-timeout: end its standard input instead");
}

static void refuse_nonsense(const struct options *options, const struct reading *reading)
{
	bool by_fd = options->locks[0].name == NULL;
	unsigned can = options->method->can;

	refuse(options->json && !options->who, "--json goes with --who");
	refuse(options->check && (options->who || reading->acts || options->nlocks != 1),
	    "--check looks at one LOCK: beside it there may be -m, --fcntl and --name, and nothing "
	    "else");
	refuse(options->who && reading->acts,
	    "--who only looks: beside it there may be --json, -m, --fcntl and --name, and nothing "
	    "else");
	refuse_of_files(options);
	refuse_of_servers(options);
	refuse_of_holding(options, reading);
	refuse(options->become && options->close_fd,
	    "-F and -o: the command would close its own lock; leave one out");
	refuse(options->become && options->remove,
	    "-F and --rm: nobody is left to remove the file; leave one out");
	refuse(options->become && reading->limited,
	    "-F and --run-timeout: nobody is left to stop the command; leave one out");
	refuse(reading->limited && options->command == NULL && !options->who,
	    "--run-timeout: there is no command to stop");
	refuse(options->signal != 0 && !reading->limited, "--signal goes with --run-timeout");
	refuse(reading->kills && !reading->limited && options->steer == STEER_NOT,
	    "--kill-after goes with --run-timeout, --replace and --toggle");
	refuse(reading->name != NULL && reading->fd_given,
	    "--name and --fd are two locks: choose one");
	refuse(options->nested && (by_fd || options->nlocks > 1),
	    "--nested: only together with one LOCK and a command");
	refuse(options->unlock && !by_fd && !options->as_flock,
	    "-u is for descriptors: semlock -u 8; a command's lock ends with the command");
	refuse(by_fd && (can & CAN_FD) == 0,
	    "-m posix: the lock would be semlock's own and end with it; use -m ofd, which "
	    "excludes the same programs");
	refuse(by_fd && options->remove, "--rm: a descriptor says nothing of the file's name");
	refuse(by_fd && options->exact_mode, "--mode: there is no file to create");
	refuse(by_fd && options->nlocks > 1, "-f: only together with LOCK and a command");
	refuse(options->slots > 0 && reading->mode_given && reading->mode == SHARED,
	    "-j and -s: a slot is held by one; leave one out");
	refuse(options->slots > 0 && options->nlocks > 1,
	    "-j and -f: several locks are whole ones; leave one out");
	refuse(options->slots > 0 && options->range.length > 0 &&
		   options->range.length < (off_t)options->slots,
	    "-j: each slot is a byte, and --length has room for fewer");
}

/* "--who" of an unset variable must not be told that it is free. */
static void refuse_empty_names(const struct options *options)
{
	for (unsigned i = 0; i < options->nlocks; i++)
		if (options->locks[i].name != NULL && *options->locks[i].name == '\0')
			die(EXIT_NOTOPEN, "LOCK is an empty word: is a variable not set?");
}

void rules_apply(struct options *options, const struct reading *reading)
{
	refuse_empty_names(options);
	choose_method(options, reading);
	choose_by_url(options, reading);
	refuse_nonsense(options, reading);
	if (options->steer != STEER_NOT)
		refuse_steering(options);
}
