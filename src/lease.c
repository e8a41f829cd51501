#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "descriptor.h"
#include "lease.h"
#include "locksmith.h"
#include "locksmith/common/holders.h"
#include "pidfd.h"
#include "process.h"
#include "report.h"

/* A command that was told to end because the lock is another's already has no longer than this. */
#define MERCY SECOND

static bool command_lives(const struct lease *lease)
{
	return process_lives(lease->command);
}

static void signal_command(const struct lease *lease, int signo)
{
	if (lease->process >= 0)
		pidfd_send(lease->process, signo);
	else if (command_lives(lease))
		kill(lease->command, signo);
}

/* The command, and what it has started: whoever would keep the lock has lost it. */
static void signal_all(const struct lease *lease, int signo)
{
	signal_command(lease, signo);
	holders_signal(lease->lock->smith->eye, signo, lease->lock->smith->pid);
}

static void lose(struct lease *lease, const char *reason)
{
	if (lease->lock->lost || !command_lives(lease))
		return;
	lease->lock->lost = lease->lock->lost_said = true;
	snprintf(lease->loss, sizeof lease->loss, "%s", reason);
}

static void say_loss(struct lease *lease)
{
	if (lease->loss[0] != '\0')
		complain("%s: the lock is lost: %s; stopping the command", lease->label, lease->loss);
	lease->loss[0] = '\0';
}

static void follow_deadline(struct lease *lease)
{
	const struct locksmith *smith = lease->lock->smith;

	if (lease->lock->lost)
		return; /* who has been told to end is not told otherwise */
	lease->term_at = smith->deadline - smith->lease / 3;
	lease->kill_at = smith->deadline - smith->lease / 10;
}

static void stop_at_once(struct lease *lease, const char *reason)
{
	int64_t now = clock_boottime();

	lose(lease, reason);
	lease->term_at = now;
	if (lease->kill_at > now + MERCY)
		lease->kill_at = now + MERCY;
}

/* Whatever it has said by now. */
static void listen(struct lease *lease)
{
	const struct deadline now = deadline_after(0);
	const char *line, *text;
	int got = LINE_END;

	while (!lease->deaf && (got = locksmith_line(lease->lock->smith, &now, &line)) == LINE_READ) {
		if ((text = locksmith_says(line, "LOST")) != NULL)
			stop_at_once(lease, text);
		if (locksmith_says(line, "HELD") != NULL) {
			locksmith_note(lease->lock->smith, line);
			follow_deadline(lease);
		}
	}
	if (got == LINE_END && !lease->deaf) {
		lease->deaf = true;
		stop_at_once(lease, "its helper has ended");
	}
}

static void act(struct lease *lease)
{
	int64_t now = clock_boottime();

	if (!lease->termed && now >= lease->term_at) {
		lose(lease, "the server could not be asked in time to go on with it");
		signal_all(lease, SIGTERM);
		signal_all(lease, SIGCONT); /* who is stopped has to run to obey */
		lease->termed = true;
	}
	if (!lease->killed && now >= lease->kill_at) {
		signal_all(lease, SIGKILL);
		lease->killed = true;
	}
	say_loss(lease); /* last: it may be that nobody reads it */
}

/* How long to sleep, in ms, where no timer goes by the right clock. */
static int set_timer(const struct lease *lease)
{
	int64_t next = lease->termed ? lease->kill_at : lease->term_at, left;

	if (lease->killed)
		return -1;
	if (lease->timer >= 0) {
		const struct itimerspec when = {
		    .it_value = {(time_t)(next / SECOND), (long)(next % SECOND)},
		};

		timerfd_settime(lease->timer, TFD_TIMER_ABSTIME, &when, NULL);
		return -1;
	}
	left = next - clock_boottime();
	return left > SECOND / 5 ? 200 : left > 0 ? (int)(left / MILLISECOND) + 1 : 0;
}

static void *keep(void *argument)
{
	struct lease *lease = argument;
	struct pollfd sources[] = {
	    {lease->stop[0], POLLIN, 0},
	    {lease->lock->smith->out, POLLIN, 0},
	    {lease->timer, POLLIN, 0},
	};

	do {
		listen(lease);
		act(lease);
		if (lease->deaf)
			sources[1].fd = -1;
		if (lease->killed)
			sources[2].fd = -1;
	} while ((poll(sources, 3, set_timer(lease)) >= 0 || errno == EINTR) &&
		 sources[0].revents == 0);
	return NULL;
}

/* Signals are for the main thread, which waits for them. */
static bool start_thread(struct lease *lease)
{
	sigset_t all, before;
	pthread_attr_t small;
	bool started;

	sigfillset(&all);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)256 * 1024);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	started = pthread_create(&lease->thread, &small, keep, lease) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&small);
	return started;
}

int lease_start(struct lease *lease, struct lock *lock, const char *label, pid_t command,
    struct why *why)
{
	*lease = (struct lease){
	    .lock = lock,
	    .label = label,
	    .command = command,
	    .process = -1,
	    .timer = -1,
	};
	follow_deadline(lease);
	/* We may have been stopped since the last word, and the lock be another's: then the thread would
	 * come too late for a short command. */
	if (clock_boottime() >= lease->term_at)
		return why_say(why, TROUBLE_LOST,
		    "lost before the command was started: the lease is over, or nearly so");
	if (descriptor_pipe(lease->stop) != 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot make a pipe");
	lease->process = pidfd_of(command);
	lease->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	if (lease->timer >= 0)
		lease->timer = descriptor_above_standard(lease->timer);
	lease->running = start_thread(lease);
	if (!lease->running)
		return why_set(why, TROUBLE_SYSTEM, "cannot start the thread that keeps the time");
	return 0;
}

/* The command has ended, told to or not; what it started and left behind has as long as it had,
 * and not longer.  One look may miss what is forked meanwhile; but who cannot be killed, being
 * another user's, is not waited for. */
static void stop_leftovers(struct lease *lease)
{
	static const struct timespec a_moment = {0, 20 * MILLISECOND};
	int64_t now = clock_boottime();
	int64_t give_up = (now > lease->kill_at ? now : lease->kill_at) + SECOND;

	while (!locksmith_let_go(lease->lock->smith) && now < give_up) {
		if (now >= lease->kill_at)
			holders_signal(lease->lock->smith->eye, SIGKILL, lease->lock->smith->pid);
		else
			nanosleep(&a_moment, NULL);
		now = clock_boottime();
	}
}

void lease_stop(struct lease *lease)
{
	if (!lease->running)
		return;
	close(lease->stop[1]);
	pthread_join(lease->thread, NULL);
	close(lease->stop[0]);
	if (lease->lock->lost)
		stop_leftovers(lease);
	if (lease->process >= 0)
		close(lease->process);
	if (lease->timer >= 0)
		close(lease->timer);
	lease->running = false;
}
