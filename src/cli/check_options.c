/* SPDX-License-Identifier: MIT */
/* Which options go together, and with which method. */
#include <config.h>

#include "cli/reading.h"
#include "report/error.h"
#include "sys/deadline.h"

static void refuse_if(bool bad, const char *reason)
{
	if (bad)
		die(EXIT_USAGE, "%s", reason);
}

static void refuse_for_files(const struct request *request)
{
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
	refuse_if(request->spec.ttl > 0 && request->spec.ttl < 2 * SECOND,
	    "--ttl: a lease lasts 2 seconds at least");
	refuse_if(request->become, "-F: semlock has to stay, to renew the lease; leave out -F");
	refuse_if(request->spec.to_be_removed,
	    "--rm: on a server nothing is left behind that could be removed");
	refuse_if(request->spec.exact_mode, "--mode: on a server semlock makes no file");
	refuse_if(request->preempt != PREEMPT_NOT,
	    "--replace and --toggle: the holder of a lock on a server is not within reach");
	refuse_if(request->first,
	    "--first: a server serves its waiters in the order in which they came");
	refuse_if(request->on_lost != 0,
	    "--on-lost: when a lock on a server is lost, the command is stopped in any case");
}

static void refuse_for_preemption(const struct request *request)
{
	refuse_if(request->nonblocking && request->older == 0,
	    "-n with --replace or --toggle: to stop the holder takes time; use -w");
	refuse_if(request->nlocks > 1 || request->spec.slots > 0,
	    "--replace and --toggle stop the holder of one lock: leave out -f and -j");
	refuse_if(request->preempt == PREEMPT_TOGGLE && request->command == NULL,
	    "--toggle: there is no command to switch on");
	refuse_if(request->unlock || request->nested,
	    "--replace and --toggle go with neither -u nor --nested");
}

static void refuse_for_hold(const struct request *request, const struct reading *reading)
{
	refuse_if(request->command != NULL,
	    "--hold: no command is run; it holds LOCK until the end of standard input");
	refuse_if(request->locks[0].name == NULL,
	    "--hold: name a LOCK; a descriptor is the caller's to hold");
	refuse_if(request->become || request->nested || request->unlock ||
		      request->preempt == PREEMPT_TOGGLE,
	    "--hold goes with none of -F, -u, --nested and --toggle");
	refuse_if(reading->limited, "--hold and --run-timeout: end its standard input instead");
}

static void refuse_for_fd(const struct request *request)
{
	refuse_if((request->spec.method->can & CAN_FD) == 0,
	    "-m posix: the lock would be semlock's own and end with it; use -m ofd, which excludes "
	    "the same programs");
	refuse_if(request->spec.to_be_removed,
	    "--rm: a descriptor says nothing of the file's name");
	refuse_if(request->spec.exact_mode, "--mode: there is no file to create");
	refuse_if(request->nlocks > 1, "-f: only together with LOCK and a command");
}

static void refuse_for_slots(const struct request *request, const struct reading *reading)
{
	refuse_if(reading->mode_given && reading->mode == SHARED,
	    "-j and -s: a slot is held by one; leave one out");
	refuse_if(request->nlocks > 1, "-j and -f: several locks are whole ones; leave one out");
	refuse_if(request->spec.take > 1 &&
		      (request->spec.method->family == ON_SERVER || request->locks[0].name == NULL),
	    "--take: only a lock of the kernel has several slots for one holder, and it is named, "
	    "no descriptor");
	refuse_if(reading->range_asked,
	    "-j and --start or --length: the slots are bytes of their own; leave one out");
}

void options_check(const struct request *request, const struct reading *reading)
{
	bool by_fd = request->locks[0].name == NULL;

	refuse_if(request->spec.range.length > INT64_MAX - request->spec.range.start,
	    "--start and --length: no file has so many bytes");
	refuse_if(request->json && !request->who, "--json goes with --who");
	refuse_if(request->who && reading->acts, "--who only looks: beside it there may be --json, "
						 "-m, --fcntl and --name, and nothing else");
	refuse_if(request->who && request->nlocks == 0 && request->method_named,
	    "--who: -m and --fcntl go with a LOCK");
	if (request->nlocks == 0)
		return;
	refuse_if(request->spec.init && (request->spec.method->can & NEEDS_INIT) == 0,
	    "--init: only -m rename has a lock file that must be there");
	refuse_if(request->spec.stale > 0 && request->spec.method->family == OF_KERNEL,
	    "--stale: the kernel frees this lock when its holder dies; only a lock made of files "
	    "can be stale");
	refuse_if(request->on_lost != 0 && request->spec.method->family == OF_KERNEL,
	    "--on-lost: only a lock made of files can be taken away from its holder");
	refuse_if(request->spec.ttl > 0 && request->spec.method->family != ON_SERVER,
	    "--ttl: only a lock on a server has a lease");
	if (request->spec.method->family == OF_FILES)
		refuse_for_files(request);
	if (request->spec.method->family == ON_SERVER)
		refuse_for_servers(request);
	if (request->hold)
		refuse_for_hold(request, reading);
	if (request->preempt != PREEMPT_NOT)
		refuse_for_preemption(request);
	refuse_if(request->older > 0 && request->preempt != PREEMPT_REPLACE,
	    "--older goes with --replace");
	refuse_if(request->become && request->close_fd,
	    "-F and -o: the command would close its own lock; leave one out");
	refuse_if(request->become && request->spec.to_be_removed,
	    "-F and --rm: semlock has to stay, to remove the file; leave one out");
	refuse_if(request->become && reading->limited,
	    "-F and --run-timeout: semlock has to stay, to stop the command; leave one out");
	refuse_if(request->first && (request->unlock || request->preempt != PREEMPT_NOT ||
					request->queue_max >= 0),
	    "--first is a place in the queue: leave out -u, --replace (which has it), --toggle and "
	    "--queue-max");
	refuse_if(request->log != NULL &&
		      (request->become || (request->command == NULL && !request->hold)),
	    "--log: semlock must stay to write it at the end; leave out -F, and name a command");
	refuse_if(request->queue_max >= 0 &&
		      (request->nlocks > 1 || request->unlock || request->preempt != PREEMPT_NOT),
	    "--queue-max counts the waiters of one LOCK: leave out -f, -u, --replace and --toggle");
	refuse_if(request->min_hold > 0 && (request->become || request->unlock ||
					       (request->command == NULL && !request->hold)),
	    "--min-hold: semlock must stay to hold the lock; leave out -F and -u, and name a "
	    "command");
	refuse_if(reading->limited && request->command == NULL,
	    "--run-timeout: there is no command to stop");
	refuse_if(request->signal != 0 && !reading->limited, "--signal goes with --run-timeout");
	refuse_if(reading->kills && !reading->limited && request->preempt == PREEMPT_NOT &&
		      !request->dies_with_parent,
	    "--kill-after goes with --run-timeout, --replace, --toggle and --die-with-parent");
	refuse_if(request->become && request->dies_with_parent,
	    "-F and --die-with-parent: semlock has to stay, to end the command; leave one out");
	refuse_if(reading->name != NULL && reading->fd_given,
	    "--name and --fd are two locks: choose one");
	refuse_if(request->nested && (by_fd || request->nlocks > 1),
	    "--nested: only together with one LOCK and a command");
	refuse_if(request->unlock && !by_fd && !request->as_flock,
	    "-u is for descriptors: semlock -u 8; a command's lock ends with the command");
	if (by_fd)
		refuse_for_fd(request);
	refuse_if(request->spec.take > request->spec.slots,
	    "--take goes with -j, and takes no more slots than that has");
	if (request->spec.slots > 0)
		refuse_for_slots(request, reading);
}
