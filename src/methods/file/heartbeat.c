/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "methods/file/foreign_holder.h"
#include "methods/file/heartbeat.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "report/error.h"

struct heartbeat {
	/* the caller sets these */
	struct lock *locks; /* COUNT of them, which are held */
	unsigned count;
	int64_t stale;   /* ns: beat every quarter of it; 0: as often as the methods need it */
	int on_lost;     /* LOST_WARN, or a signal's number; 0: neither */
	pid_t command;   /* the process that runs under the locks */
	void (*report)(const struct lock *lock); /* tell the user, from the thread, that LOCK is lost */

	int64_t every;   /* ns between two beats; INT64_MAX: none */
	int process;     /* COMMAND's pidfd, or -1 */
	int stop[2];     /* a pipe: closing stop[1] ends the thread */
	struct pollfd *sources; /* COUNT locks' changes, and stop[0] */
	pthread_t thread;
	bool running;
};

/* Once the command has ended its record names a dead process, and a takeover is no loss. */
static void check_lock(const struct heartbeat *heartbeat, struct lock *lock)
{
	if (lock->end.lost || lock->spec->method->owned(lock) || !process_child_lives(heartbeat->command))
		return;
	lock->end.lost = true;
	if (heartbeat->on_lost > 0) { /* the signal first: the message may block */
		process_child_signal(heartbeat->command, heartbeat->process, heartbeat->on_lost);
		/* A stopped process has to run to be ended. */
		process_child_signal(heartbeat->command, heartbeat->process, SIGCONT);
	}
	heartbeat->report(lock);
}

#define LONGEST_POLL 1000 /* ms */

static int poll_timeout(const struct deadline *beat)
{
	int64_t left = deadline_left(beat) / MILLISECOND + 1;

	return left > LONGEST_POLL ? LONGEST_POLL : (int)left;
}

static void check_locks(const struct heartbeat *heartbeat, const struct pollfd *sources, bool beat)
{
	char events[4096];

	for (unsigned i = 0; i < heartbeat->count; i++) {
		if (sources[i].revents != 0)
			while (read(sources[i].fd, events, sizeof events) > 0)
				; /* that it has changed is enough */
		check_lock(heartbeat, &heartbeat->locks[i]);
		if (beat && !heartbeat->locks[i].end.lost)
			heartbeat->locks[i].spec->method->object->beat(&heartbeat->locks[i]);
	}
}

static void *heartbeat_thread(void *argument)
{
	struct heartbeat *heartbeat = argument;
	struct pollfd *sources = heartbeat->sources;
	struct deadline beat = deadline_after(heartbeat->every);

	/* inotify is slow to close: it is used only with --on-lost; otherwise once a second is soon enough. */
	for (unsigned i = 0; i < heartbeat->count; i++)
		sources[i] = (struct pollfd){
		    heartbeat->on_lost == 0 ? -1 : foreign_holder_listen(&heartbeat->locks[i]), POLLIN, 0};
	sources[heartbeat->count] = (struct pollfd){heartbeat->stop[0], POLLIN, 0};
	do {
		check_locks(heartbeat, sources, deadline_left(&beat) == 0);
		if (deadline_left(&beat) == 0)
			beat = deadline_after(heartbeat->every);
	} while (poll(sources, heartbeat->count + 1, poll_timeout(&beat)) >= 0 &&
		 sources[heartbeat->count].revents == 0);
	return NULL;
}

/* Mail programs take a lock for stale after five minutes or more. */
static int64_t beat_interval(const struct lock *locks, unsigned count, int64_t stale)
{
	int64_t every = stale > 0 ? stale / 4 : INT64_MAX;

	for (unsigned i = 0; i < count; i++)
		if ((locks[i].spec->method->can & BEATS) != 0 && every > 60 * SECOND)
			every = 60 * SECOND;
	return every;
}

static void heartbeat_forget(struct heartbeat *heartbeat)
{
	for (int i = 0; i < 2; i++)
		if (heartbeat->stop[i] >= 0)
			close(heartbeat->stop[i]);
	if (heartbeat->process >= 0)
		close(heartbeat->process);
	free(heartbeat->sources);
	*heartbeat = (struct heartbeat){.stop = {-1, -1}, .process = -1};
}

static struct heartbeat the_heartbeat;

int heartbeat_guard(const struct guard *guard, struct error *error)
{
	const int64_t stale = guard->locks->spec->stale;
	struct heartbeat *heartbeat = &the_heartbeat;

	*heartbeat = (struct heartbeat){
	    .locks = guard->locks,
	    .count = guard->count,
	    .stale = stale,
	    .on_lost = guard->on_lost,
	    .command = guard->command,
	    .report = guard->report,
	    .every = beat_interval(guard->locks, guard->count, stale),
	    .process = -1,
	    .stop = {-1, -1},
	};
	if (heartbeat->command <= 0 || (heartbeat->every == INT64_MAX && heartbeat->on_lost == 0))
		return 0;
	heartbeat->process = pidfd_of(heartbeat->command);
	heartbeat->sources = calloc(heartbeat->count + 1, sizeof *heartbeat->sources);
	if (heartbeat->sources != NULL && !FAULT_POINT("heartbeat.pipe") && descriptor_pipe(heartbeat->stop) == 0 &&
	    !FAULT_POINT("heartbeat.thread")) {
		errno = signals_free_thread(&heartbeat->thread, heartbeat_thread, heartbeat);
		heartbeat->running = errno == 0;
	}
	if (heartbeat->running)
		return 0;
	error_set(error, ERROR_SYSTEM, "cannot monitor the lock while the command runs");
	heartbeat_forget(heartbeat);
	return stale > 0 || guard->on_lost != 0 ? -1 : 1;
}

void heartbeat_unguard(void)
{
	struct heartbeat *heartbeat = &the_heartbeat;

	if (!heartbeat->running)
		return;
	close(heartbeat->stop[1]);
	heartbeat->stop[1] = -1;
	pthread_join(heartbeat->thread, NULL);
	heartbeat_forget(heartbeat);
}
