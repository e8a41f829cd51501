#include <config.h>

#include <stddef.h>
#include <string.h>

#include "cli/reading.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/server/server.h"
#include "report/error.h"
#include "report/exitcode.h"
#include "sys/deadline.h"

/* Invoked as flock, URLs are not recognised. */
static void choose_by_url(struct request *request, const struct reading *reading)
{
	bool named = reading->method_named || reading->fcntl_asked || reading->range_asked;

	for (unsigned i = 0; i < request->nlocks && !request->as_flock; i++) {
		const char *name = request->locks[i].name;
		bool may_be_url = name != NULL && strchr(name, ':') != NULL;
		const struct method *method = may_be_url ? server_method(name) : NULL;

		if (may_be_url && server_mistyped(name))
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
			request->spec.method = method;
	}
}

static void choose_method(struct request *request, const struct reading *reading)
{
	if (reading->fcntl_asked && (!reading->method_named || request->spec.method != &method_ofd)) {
		if (reading->method_named)
			die(EXIT_USAGE, "--fcntl and -m %s are two methods: choose one",
			    request->spec.method->name);
		request->spec.method = &method_ofd;
	} else if (reading->range_asked && !reading->method_named) {
		request->spec.method = &method_ofd; /* as with flock(1) */
	}
	if (reading->range_asked && (request->spec.method->can & CAN_RANGE) == 0)
		die(EXIT_USAGE, "--start and --length: -m %s locks the whole file; use -m ofd",
		    request->spec.method->name);
}

static void refuse_if(bool bad, const char *reason)
{
	if (bad)
		die(EXIT_USAGE, "%s", reason);
}

static void refuse_for_files(const struct request *request)
{
	refuse_if(request->spec.init && (request->spec.method->can & NEEDS_INIT) == 0,
	    "--init: only -m rename has a token that must be there");
	refuse_if(request->spec.stale > 0 && (request->spec.method->can & FREED_BY_KERNEL) != 0,
	    "--stale: the kernel frees this lock when its holder dies; only a lock made of files "
	    "can be stale");
	refuse_if(request->on_lost != 0 && (request->spec.method->can & FREED_BY_KERNEL) != 0,
	    "--on-lost: only a lock made of files can be taken away from its holder");
	if ((request->spec.method->can & LEAVES_RECORD) == 0)
		return;
	refuse_if(request->locks[0].name == NULL,
	    "-m excl, link, mkdir, rename and symlink lock a name, not a descriptor: name LOCK and "
	    "a command");
	for (unsigned i = 0; i < request->nlocks; i++)
		refuse_if(request->locks[i].mode == SHARED,
		    "-s: a lock made of files has one holder; use -m flock, ofd or posix");
	refuse_if(request->spec.slots > 0,
	    "-j: a lock made of files has one holder; use -m flock, ofd or posix");
	refuse_if(request->spec.exact_mode && (request->spec.method->can & CAN_MODE) == 0,
	    "--mode: a symbolic link has no permissions");
	refuse_if(request->become, "-F: semlock has to stay, to remove the lock; leave out -F");
}

static void refuse_for_servers(const struct request *request)
{
	bool on_server = (request->spec.method->can & HAS_LEASE) != 0;

	refuse_if(request->spec.ttl > 0 && !on_server, "--ttl: only a lock on a server has a lease");
	refuse_if(request->spec.ttl > 0 && request->spec.ttl < 2 * SECOND, "--ttl: a lease lasts 2 seconds at least");
	if (!on_server)
		return;
	refuse_if(request->become, "-F: semlock has to stay, to renew the lease; leave out -F");
	refuse_if(request->spec.to_be_removed, "--rm: on a server nothing is left behind that could be removed");
	refuse_if(request->spec.exact_mode, "--mode: on a server semlock makes no file");
	refuse_if(request->preempt != PREEMPT_NOT,
	    "--replace and --toggle: the holder of a lock on a server is not within reach");
	refuse_if(request->on_lost != 0,
	    "--on-lost: when a lock on a server is lost, the command is stopped in any case");
}

static void refuse_for_preemption(const struct request *request)
{
	refuse_if(request->nonblocking,
	    "-n with --replace or --toggle: to stop the holder takes time; use -w");
	refuse_if(request->nlocks > 1 || request->spec.slots > 0,
	    "--replace and --toggle stop the holder of one lock: leave out -f and -j");
	refuse_if(request->preempt == PREEMPT_TOGGLE && request->command == NULL,
	    "--toggle: there is no command to switch on");
	refuse_if(request->unlock, "-u with --replace or --toggle makes no sense");
}

static void refuse_for_hold(const struct request *request, const struct reading *reading)
{
	refuse_if(request->command != NULL,
	    "--hold: no command is run; it holds LOCK until the end of standard input");
	refuse_if(request->locks[0].name == NULL, "--hold: name a LOCK; a descriptor is the caller's to hold");
	refuse_if(request->become || request->nested || request->unlock || request->preempt == PREEMPT_TOGGLE,
	    "--hold goes with none of -F, -u, --nested and --toggle");
	refuse_if(reading->limited, "--hold and --run-timeout: end its standard input instead");
}

static void refuse_for_fd(const struct request *request)
{
	refuse_if((request->spec.method->can & CAN_FD) == 0,
	    "-m posix: the lock would be semlock's own and end with it; use -m ofd, which "
	    "excludes the same programs");
	refuse_if(request->spec.to_be_removed, "--rm: a descriptor says nothing of the file's name");
	refuse_if(request->spec.exact_mode, "--mode: there is no file to create");
	refuse_if(request->nlocks > 1, "-f: only together with LOCK and a command");
}

static void refuse_for_slots(const struct request *request, const struct reading *reading)
{
	refuse_if(reading->mode_given && reading->mode == SHARED,
	    "-j and -s: a slot is held by one; leave one out");
	refuse_if(request->nlocks > 1,
	    "-j and -f: several locks are whole ones; leave one out");
	refuse_if(request->spec.range.length > 0 &&
		   request->spec.range.length < (off_t)request->spec.slots,
	    "-j: each slot is a byte, and --length has room for fewer");
}

static void refuse_nonsense(const struct request *request, const struct reading *reading)
{
	bool by_fd = request->locks[0].name == NULL;

	refuse_if(request->spec.range.length > INT64_MAX - request->spec.range.start,
	    "--start and --length: no file has so many bytes");
	refuse_if(request->json && !request->who, "--json goes with --who");
	refuse_if(request->check && (request->who || reading->acts || request->nlocks != 1),
	    "--check looks at one LOCK: beside it there may be -m, --fcntl and --name, and nothing "
	    "else");
	refuse_if(request->who && reading->acts,
	    "--who only looks: beside it there may be --json, -m, --fcntl and --name, and nothing "
	    "else");
	refuse_if(request->who && request->nlocks == 0 && request->method_named, "--who: -m and --fcntl go with a LOCK");
	if (request->nlocks == 0)
		return;
	refuse_for_files(request);
	refuse_for_servers(request);
	if (request->hold)
		refuse_for_hold(request, reading);
	if (request->preempt != PREEMPT_NOT)
		refuse_for_preemption(request);
	refuse_if(request->become && request->close_fd,
	    "-F and -o: the command would close its own lock; leave one out");
	refuse_if(request->become && request->spec.to_be_removed,
	    "-F and --rm: semlock has to stay, to remove the file; leave one out");
	refuse_if(request->become && reading->limited,
	    "-F and --run-timeout: semlock has to stay, to stop the command; leave one out");
	refuse_if(request->queue_max >= 0 &&
		   (request->nlocks > 1 || request->unlock || request->preempt != PREEMPT_NOT),
	    "--queue-max counts the waiters of one LOCK: leave out -f, -u, --replace and --toggle");
	refuse_if(request->min_hold > 0 &&
		   (request->become || request->unlock || (request->command == NULL && !request->hold)),
	    "--min-hold: semlock must stay to hold the lock; leave out -F and -u, and name a command");
	refuse_if(reading->limited && request->command == NULL,
	    "--run-timeout: there is no command to stop");
	refuse_if(request->signal != 0 && !reading->limited, "--signal goes with --run-timeout");
	refuse_if(reading->kills && !reading->limited && request->preempt == PREEMPT_NOT,
	    "--kill-after goes with --run-timeout, --replace and --toggle");
	refuse_if(reading->name != NULL && reading->fd_given,
	    "--name and --fd are two locks: choose one");
	refuse_if(request->nested && (by_fd || request->nlocks > 1),
	    "--nested: only together with one LOCK and a command");
	refuse_if(request->unlock && !by_fd && !request->as_flock,
	    "-u is for descriptors: semlock -u 8; a command's lock ends with the command");
	if (by_fd)
		refuse_for_fd(request);
	if (request->spec.slots > 0)
		refuse_for_slots(request, reading);
}

/* Once: --who "$unset" said that the lock is free. */
static void refuse_empty_names(const struct request *request)
{
	for (unsigned i = 0; i < request->nlocks; i++)
		if (request->locks[i].name != NULL && *request->locks[i].name == '\0')
			die(request->as_flock ? EXIT_NOTOPEN : EXIT_USAGE,
			    "LOCK is an empty word: is a variable not set?");
}

void check_options(struct request *request, const struct reading *reading)
{
	refuse_empty_names(request);
	choose_method(request, reading);
	choose_by_url(request, reading);
	refuse_nonsense(request, reading);
}
