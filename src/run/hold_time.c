/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>

#include "run/hold_time.h"
#include "run/subreaper.h"
#include "sys/deadline.h"
#include "sys/signals.h"

void hold_time_begins(struct hold_time *time)
{
	time->began = clock_now();
}

void hold_time_holds(struct hold_time *time)
{
	if (time->began != 0)
		time->since = clock_now();
}

void hold_time_ends(struct hold_time *time)
{
	if (time->since != 0)
		time->until = clock_now();
}

int64_t hold_time_waited(const struct hold_time *time)
{
	if (time->began == 0)
		return 0;
	return (time->since != 0 ? time->since : clock_now()) - time->began;
}

int64_t hold_time_held(const struct hold_time *time)
{
	if (time->since == 0)
		return 0;
	return (time->until != 0 ? time->until : clock_now()) - time->since;
}

void hold_time_at_least(const struct hold_time *time, int64_t duration,
    const struct subreaper *subreaper)
{
	/* SIGCONT may mean that the subreaper or the parent has ended */
	sigset_t signals = signals_only(SIGCONT), stop = signals_only(SIGTSTP);
	int64_t left;
	int signo = 0;

	sigaddset(&signals, SIGPWR); /* the same, if the parent is in another PID namespace */
	for (size_t i = 0; i < ENDING_SIGNALS; i++)
		if (!signals_ignored(ending_signals[i])) /* as HUP is under nohup(1) */
			sigaddset(&signals, ending_signals[i]);
	/* Let Ctrl-Z stop semlock: supervise(), which stops it together with the command, has
	 * returned. */
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	while ((left = duration - hold_time_held(time)) > 0 &&
	       (signo <= 0 || signo == SIGCONT || signo == SIGPWR) && !parent_ended_by(signo) &&
	       !subreaper_killed(subreaper)) {
		left = left > SECOND ? SECOND : left;
		signo = signals_wait(&signals, NULL, left);
		if (signo < 0 && errno != EAGAIN && errno != EINTR)
			/* sigtimedwait(2) is refused, for example by a sandbox */
			poll(NULL, 0, (int)(left / MILLISECOND) + 1);
	}
}
