#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "crash.h"
#include "descriptor.h"
#include "keeper.h"
#include "pidfd.h"
#include "process.h"
#include "report.h"

/* By pidfd: the number could have become another's. */
static void send_signal(const struct keeper *keeper, int signo)
{
	if (keeper->process >= 0)
		pidfd_send(keeper->process, signo);
	else if (process_lives(keeper->command))
		kill(keeper->command, signo);
}

static void act(const struct keeper *keeper)
{
	if (keeper->on_lost <= 0)
		return;
	send_signal(keeper, keeper->on_lost);
	send_signal(keeper, SIGCONT); /* who is stopped has to run to obey */
}

/* When the command has ended, its record names a dead process, and whoever takes the lock over then
 * is in the right. */
static void look_at(const struct keeper *keeper, struct lock *lock)
{
	if (lock->lost || lock->method->owned(lock) || !process_lives(keeper->command))
		return;
	lock->lost = true;
	act(keeper); /* first: it may be that nobody reads what we say */
	complain("%s: somebody has taken the lock away from the command that runs", lock->name);
}

/* What exactly has changed is for the look to find out. */
static void drain(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof events) > 0)
		;
}

#define SOON 1000 /* ms */

static int pause_until(const struct deadline *beat)
{
	int64_t left = deadline_left(beat) / MILLISECOND + 1;

	if (beat->never || left > SOON)
		return SOON;
	return (int)left;
}

static void look_at_all(const struct keeper *keeper, const struct pollfd *sources, bool beat)
{
	for (unsigned i = 0; i < keeper->count; i++) {
		if (sources[i].revents != 0)
			drain(sources[i].fd);
		look_at(keeper, &keeper->locks[i]);
		if (beat && !keeper->locks[i].lost)
			keeper->locks[i].method->beat(&keeper->locks[i]);
	}
}

/* To be told at once has its price; who has not asked for it is told soon. */
static int listen_to(const struct keeper *keeper, struct lock *lock)
{
	return keeper->on_lost == 0 ? -1 : lock->method->listen(lock);
}

static struct deadline next_beat(const struct keeper *keeper)
{
	return keeper->every == INT64_MAX ? deadline_never() : deadline_after(keeper->every);
}

static void *keep(void *argument)
{
	struct keeper *keeper = argument;
	struct pollfd *sources = keeper->sources;
	struct deadline beat = next_beat(keeper);

	for (unsigned i = 0; i < keeper->count; i++)
		sources[i] = (struct pollfd){listen_to(keeper, &keeper->locks[i]), POLLIN, 0};
	sources[keeper->count] = (struct pollfd){keeper->stop[0], POLLIN, 0};
	do {
		look_at_all(keeper, sources, deadline_left(&beat) == 0);
		if (deadline_left(&beat) == 0)
			beat = next_beat(keeper);
	} while (poll(sources, keeper->count + 1, pause_until(&beat)) >= 0 &&
		 sources[keeper->count].revents == 0);
	return NULL;
}

/* Age-breakers among mail programs wait for five minutes and more. */
static int64_t interval(const struct lock *locks, unsigned count, int64_t stale)
{
	int64_t every = stale > 0 ? stale / 4 : INT64_MAX;

	for (unsigned i = 0; i < count; i++)
		if ((locks[i].method->can & BEATS) != 0 && every > 60 * SECOND)
			every = 60 * SECOND;
	return every;
}

static bool needed(const struct keeper *keeper)
{
	if (keeper->every != INT64_MAX || keeper->on_lost != 0)
		return true;
	for (unsigned i = 0; i < keeper->count; i++)
		if ((keeper->locks[i].method->can & NEEDS_AN_EYE) != 0)
			return true;
	return false;
}

/* Signals are for the main thread, which waits for them. */
static int start_thread(struct keeper *keeper)
{
	sigset_t all, before;
	pthread_attr_t small;

	sigfillset(&all);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)128 * 1024);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!FAULT_POINT("keeper.thread"))
		errno = pthread_create(&keeper->thread, &small, keep, keeper);
	keeper->running = errno == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&small);
	return keeper->running ? 0 : -1;
}

static int make_pipe(int ends[2])
{
	return FAULT_POINT("keeper.pipe") ? -1 : descriptor_pipe(ends);
}

static void forget(struct keeper *keeper)
{
	for (int i = 0; i < 2; i++)
		if (keeper->stop[i] >= 0)
			close(keeper->stop[i]);
	if (keeper->process >= 0)
		close(keeper->process);
	free(keeper->sources);
	*keeper = (struct keeper){.stop = {-1, -1}, .process = -1};
}

int keeper_start(struct keeper *keeper, struct lock *locks, unsigned count, int64_t stale,
    int on_lost, pid_t command, struct why *why)
{
	*keeper = (struct keeper){
	    .locks = locks,
	    .count = count,
	    .on_lost = on_lost,
	    .every = interval(locks, count, stale),
	    .command = command,
	    .process = -1,
	    .stop = {-1, -1},
	};
	if (command <= 0 || locks->method->owned == NULL || !needed(keeper))
		return 0;
	keeper->process = pidfd_of(command);
	keeper->sources = calloc(count + 1, sizeof *keeper->sources);
	if (keeper->sources != NULL && make_pipe(keeper->stop) == 0 && start_thread(keeper) == 0)
		return 0;
	why_set(why, TROUBLE_SYSTEM, "nobody can look after the lock while the command runs");
	forget(keeper);
	return -1;
}

void keeper_stop(struct keeper *keeper)
{
	if (!keeper->running)
		return;
	close(keeper->stop[1]);
	keeper->stop[1] = -1;
	pthread_join(keeper->thread, NULL);
	forget(keeper);
}
