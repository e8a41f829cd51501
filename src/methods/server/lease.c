/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "methods/server/lease.h"
#include "methods/server/locksmith.h"
#include "protocol/lease_schedule.h"
#include "report/error.h"
#include "report/text.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/open_fds.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"

struct lease {
	struct lock *lock;
	const char *label; /* how the user named the lock */
	pid_t command;
	/* the command's descendants, and processes that have the pipe open */
	struct pipe_holders pipe_holders;
	int process;              /* COMMAND as a pidfd, or -1 */
	int timer;                /* a timerfd on CLOCK_BOOTTIME, or -1 */
	int stop[2];              /* a pipe: its end of file ends the thread */
	int64_t term_at, kill_at; /* on CLOCK_BOOTTIME */
	int64_t pause;            /* ns between two SIGKILLs */
	bool termed;
	bool refused_said; /* the message about a process that cannot be signalled was printed */
	char loss[200];    /* the reason for the loss, until it has been printed */
	bool helper_exited;
	int64_t asleep; /* time_asleep() when the lease was last renewed */
	pthread_t thread;
	bool running;
};

/* After LOST, another holder may have the lock: SIGKILL follows SIGTERM within this time. */
#define KILL_DELAY SECOND

static void lease_signal_all(struct lease *lease, int signo)
{
	process_child_signal(lease->command, lease->process, signo);
	pipe_holders_signal(&lease->pipe_holders, signo);
}

/* Call this after the signals are sent: writing the message may block. */
static void lease_say_refused(struct lease *lease)
{
	if (lease->pipe_holders.refused > 0 && !lease->refused_said)
		complain("%s: process %ld belongs to another user and cannot be stopped; it may "
			 "still run when the next holder starts",
		    lease->label, (long)lease->pipe_holders.refused);
	lease->refused_said = lease->pipe_holders.refused > 0;
}

/* The time for which the machine has slept since it was started, in ns. */
static int64_t time_asleep(void)
{
	return clock_boottime() - clock_now();
}

static void lease_lost(struct lease *lease, const char *reason)
{
	const int64_t slept =
	    time_asleep() - lease->asleep + (FAULT_POINT("lease.slept") ? 3600 * SECOND : 0);

	if (lease->lock->end.lost || !process_child_lives(lease->command))
		return;
	lease->lock->end.lost = lease->lock->end.lost_said = true;
	if (slept > lease->lock->server.helper->lease)
		snprintf(lease->loss, sizeof lease->loss,
		    "the machine slept for %lld s, longer than the lease",
		    (long long)((slept + SECOND / 2) / SECOND));
	else /* the end of a long reason is cut off */
		snprintf(lease->loss, sizeof lease->loss, "%.*s", (int)sizeof lease->loss - 1,
		    reason);
}

static void lease_follow_deadline(struct lease *lease)
{
	const struct locksmith *helper = lease->lock->server.helper;

	if (lease->lock->end.lost)
		return; /* SIGTERM may be sent already: do not extend the deadline */
	lease->asleep = time_asleep();
	lease->term_at = lease_moment(helper->deadline, helper->lease, LEASE_TERM);
	lease->kill_at = lease_moment(helper->deadline, helper->lease, LEASE_KILL);
}

static void lease_stop_at_once(struct lease *lease, const char *reason)
{
	int64_t now = clock_boottime();

	lease_lost(lease, reason);
	lease->term_at = now;
	if (lease->kill_at > now + KILL_DELAY)
		lease->kill_at = now + KILL_DELAY;
}

/* Read what the helper has written so far; do not wait. */
static void lease_listen(struct lease *lease)
{
	const struct deadline now = deadline_after(0);
	const char *line, *text;
	struct error reason;
	int got = LINE_END;

	while (!lease->helper_exited &&
	       (got = locksmith_line(lease->lock->server.helper, &now, &line)) == LINE_READ) {
		if ((text = text_after_word(line, SAYS_LOST)) != NULL) {
			lease_stop_at_once(lease, text);
			lease->lock->end.lost = true; /* even if the command ended already */
		} else if (text_after_word(line, SAYS_HELD) != NULL) {
			locksmith_note(lease->lock->server.helper, line);
			lease_follow_deadline(lease);
		} else {
			text = text_after_word(line, SAYS_ERR);
			if (text != NULL)
				locksmith_refused(text, &reason);
			else
				locksmith_unknown(lease->lock->server.helper, line, &reason);
			lease_stop_at_once(lease, reason.text);
		}
	}
	if (got == LINE_END && !lease->helper_exited) {
		lease->helper_exited = true;
		lease_stop_at_once(lease, "its helper has ended");
	}
}

static void lease_act(struct lease *lease)
{
	int64_t now = clock_boottime();

	if (!lease->termed && now >= lease->term_at) {
		lease_lost(lease, "the lease could not be renewed in time");
		lease_signal_all(lease, SIGTERM);
		/* a stopped process handles SIGTERM only when it runs */
		lease_signal_all(lease, SIGCONT);
		lease->termed = true;
	}
	if (now >= lease->kill_at) {
		lease_signal_all(lease, SIGKILL);
		lease->pause += lease->pause < SECOND ? lease->pause : 0;
		/* kill again after PAUSE: the search misses a process that is forked meanwhile */
		lease->kill_at = now + lease->pause;
	}
	/* Last: writing a message may block. */
	if (lease->loss[0] != '\0')
		complain("%s: the lock is lost: %s; stopping the command", lease->label,
		    lease->loss);
	lease->loss[0] = '\0';
	lease_say_refused(lease);
}

/* Sets the timer.  Returns the timeout for poll(2) in ms: -1, or, where timerfd_create(2) refuses
 * CLOCK_BOOTTIME, at most 200. */
static int lease_set_timer(const struct lease *lease)
{
	int64_t next = lease->termed ? lease->kill_at : lease->term_at, left;

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

static void *lease_thread(void *argument)
{
	struct lease *lease = argument;
	struct pollfd sources[] = {
	    {lease->stop[0], POLLIN, 0},
	    {lease->lock->server.helper->out, POLLIN, 0},
	    {lease->timer, POLLIN, 0},
	};

	do {
		lease_listen(lease);
		lease_act(lease);
		if (lease->helper_exited)
			sources[1].fd = -1;
	} while (!thread_sleeps(sources, 3, 0, lease_set_timer(lease)));
	return NULL;
}

static struct lease the_lease;

int lease_guard(const struct guard *guard, struct error *error)
{
	struct lock *lock = guard->locks;
	pid_t command = guard->command;
	struct lease *lease = &the_lease;
	struct procfs_stat seen;

	*lease = (struct lease){
	    .lock = lock,
	    .label = guard->label,
	    .command = command,
	    .pipe_holders = {.pipe = lock->server.helper->monitor,
		.ancestor = getpid(),
		.except = lock->server.helper->pid},
	    .pause = 20 * MILLISECOND,
	    .process = -1,
	    .timer = -1,
	};
	lease_follow_deadline(lease);
	/* If this process was stopped since OK, the lock may belong to another holder, and the
	 * thread would stop a short command too late. */
	if (clock_boottime() >= lease->term_at)
		return error_plain(error, ERROR_LOST,
		    "lost before the command was started: the lease has ended, or is about to");
	if (descriptor_pipe(lease->stop) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
	/* Become a subreaper, so as to find descendants that have closed the pipe or never had
	 * it. */
	if (process_stat(command, &seen))
		lease->pipe_holders.since = seen.started;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	lease->process = pidfd_of(command);
	lease->timer = descriptor_above_standard(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC));
	errno = signals_free_thread(&lease->thread, lease_thread, lease);
	lease->running = errno == 0;
	if (!lease->running)
		return error_set(error, ERROR_SYSTEM, "cannot start the lease's timer thread");
	/* --who recognises a holder by this name.  Set it here, because the command may run before
	 * the thread does. */
	pthread_setname_np(lease->thread, LEASE_THREAD);
	locksmith_begin(lock->server.helper, command);
	return 0;
}

/* The command has ended.  Its descendants, and processes with the pipe open, may live until
 * KILL_AT.  From then on, kill them.  After KILL_AT, wait one second for a process that we may not
 * kill, and ten for one that does not die: it forks faster than the search finds it, or the kernel
 * keeps it from ending. */
static void lease_stop_leftovers(struct lease *lease)
{
	static const struct timespec between_looks = {0, 20 * MILLISECOND};
	int64_t now = clock_boottime();
	int64_t since = now > lease->kill_at ? now : lease->kill_at;
	bool left = true, reaped;

	while (left && now < since + (lease->pipe_holders.refused > 0 ? SECOND : 10 * SECOND)) {
		left = pipe_holders_signal(&lease->pipe_holders,
			   now >= lease->kill_at ? SIGKILL : 0) > 0;
		/* If a process was reaped, it may have forked during the search: search again.
		 * After KILL_AT, search at once, before the child forks as well. */
		reaped = pipe_holders_reap();
		if (!reaped || now < lease->kill_at)
			nanosleep(&between_looks, NULL);
		reaped = pipe_holders_reap() || reaped;
		/* While one of these processes lives, keep the helper's input open: when it ends,
		 * the helper releases the lock. */
		left = reaped || left || !locksmith_let_go(lease->lock->server.helper);
		now = clock_boottime();
	}
	lease_say_refused(lease);
}

void lease_unguard(void)
{
	struct lease *lease = &the_lease;

	if (!lease->running)
		return;
	close(lease->stop[1]);
	pthread_join(lease->thread, NULL);
	close(lease->stop[0]);
	lease_listen(lease);
	/* If semlock and the command were stopped for longer than the lease, the lease ended while
	 * the command still existed. */
	if (clock_boottime() > lease->lock->server.helper->deadline)
		lease->lock->end.lost = true;
	if (lease->lock->end.lost)
		lease_stop_leftovers(lease);
	if (lease->process >= 0)
		close(lease->process);
	if (lease->timer >= 0)
		close(lease->timer);
	lease->running = false;
}
