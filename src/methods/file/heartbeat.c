/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"
#include "methods/file/filemethods.h"

#define LONGEST_POLL 1000 /* ms */

static struct heartbeat {
	struct guard guard;
	int64_t every;          /* ns between two beats; INT64_MAX: none */
	int process;            /* the command's pidfd, or -1 */
	int stop[2];            /* a pipe: closing stop[1] ends the thread */
	struct pollfd *sources; /* the locks' changes, and stop[0] */
	pthread_t thread;
	bool running;
} heartbeat;

/* Once the command has ended, the record names a dead process, and a takeover is not a loss. */
static void check_lock(struct lock *lock)
{
	const struct guard *guard = &heartbeat.guard;

	if (lock->end.lost || lock->spec->method->owned(lock) ||
	    !process_child_lives(guard->command))
		return;
	lock->end.lost = true;
	if (guard->on_lost > 0) { /* the signal first: the message may block */
		process_child_signal(guard->command, heartbeat.process, guard->on_lost);
		/* A stopped process handles a signal only when it runs. */
		process_child_signal(guard->command, heartbeat.process, SIGCONT);
	}
	guard->report(lock);
}

static void check_locks(bool beat)
{
	char events[4096];

	for (unsigned i = 0; i < heartbeat.guard.count; i++) {
		struct lock *lock = &heartbeat.guard.locks[i];

		if (heartbeat.sources[i].revents != 0)
			while (read(heartbeat.sources[i].fd, events, sizeof events) > 0)
				; /* only the fact of a change matters */
		check_lock(lock);
		if (!beat || lock->end.lost)
			continue;
		CRASH_POINT("heartbeat.beats");
		lock->spec->method->object->beat(lock);
	}
}

static void *heartbeat_thread(void *unused)
{
	const unsigned count = heartbeat.guard.count;
	struct pollfd *sources = heartbeat.sources;
	struct deadline beat = deadline_after(heartbeat.every);
	int64_t left;

	(void)unused;
	/* An inotify descriptor takes long to close.  So use one only with --on-lost.  Without that
	 * option, a look once a second is soon enough. */
	for (unsigned i = 0; i < count; i++)
		sources[i] = (struct pollfd){heartbeat.guard.on_lost == 0
						 ? -1
						 : foreign_holder_listen(&heartbeat.guard.locks[i]),
		    POLLIN, 0};
	sources[count] = (struct pollfd){heartbeat.stop[0], POLLIN, 0};
	do {
		check_locks(deadline_left(&beat) == 0);
		if (deadline_left(&beat) == 0)
			beat = deadline_after(heartbeat.every);
		left = deadline_left(&beat) / MILLISECOND + 1;
	} while (!thread_sleeps(sources, count + 1, count,
	    left > LONGEST_POLL ? LONGEST_POLL : (int)left));
	return NULL;
}

/* The time between two signs of life, in ns.  For link (BEATS) it is a minute at most: mail
 * programs take over a lock that is five minutes old, or older. */
static int64_t beat_interval(const struct guard *guard)
{
	const int64_t stale = guard->locks->spec->stale;
	int64_t every = stale > 0 ? stale / 4 : INT64_MAX;

	for (unsigned i = 0; i < guard->count; i++)
		if (method_can(guard->locks[i].spec->method, BEATS) && every > 60 * SECOND)
			every = 60 * SECOND;
	return every;
}

static void heartbeat_forget(void)
{
	for (int i = 0; i < 2; i++)
		if (heartbeat.stop[i] >= 0)
			close(heartbeat.stop[i]);
	if (heartbeat.process >= 0)
		close(heartbeat.process);
	free(heartbeat.sources);
	heartbeat.running = false;
}

int heartbeat_guard(const struct guard *guard, struct error *error)
{
	heartbeat = (struct heartbeat){.guard = *guard,
	    .every = beat_interval(guard),
	    .process = -1,
	    .stop = {-1, -1}};
	if (guard->command <= 0 || (heartbeat.every == INT64_MAX && guard->on_lost == 0))
		return 0;
	heartbeat.process = pidfd_of(guard->command);
	heartbeat.sources = calloc(guard->count + 1, sizeof *heartbeat.sources);
	if (heartbeat.sources != NULL && !FAULT_POINT("heartbeat.pipe") &&
	    descriptor_pipe(heartbeat.stop) == 0 && !FAULT_POINT("heartbeat.thread")) {
		errno = signals_free_thread(&heartbeat.thread, heartbeat_thread, NULL);
		heartbeat.running = errno == 0;
	}
	if (heartbeat.running)
		return 0;
	error_set(error, ERROR_SYSTEM, "cannot monitor the lock while the command runs");
	heartbeat_forget();
	return guard->locks->spec->stale > 0 || guard->on_lost != 0 ? -1 : 1;
}

void heartbeat_unguard(void)
{
	if (!heartbeat.running)
		return;
	close(heartbeat.stop[1]);
	heartbeat.stop[1] = -1;
	pthread_join(heartbeat.thread, NULL);
	heartbeat_forget();
}
