/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/signals.h"

sigset_t signals_only(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	return set;
}

void signals_block_all(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

bool signals_ignored(int signo)
{
	struct sigaction action;

	return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals_wait(const sigset_t *signals, siginfo_t *info, int64_t time)
{
	struct timespec limit = {(time_t)(time / SECOND), (long)(time % SECOND)};

	return sigtimedwait(signals, info, time == INT64_MAX ? NULL : &limit);
}

int signals_free_thread(pthread_t *thread, void *(*main)(void *), void *argument)
{
	pthread_attr_t small;
	pthread_t detached;
	sigset_t before;
	int errnum;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)256 * 1024);
	signals_block_all(&before); /* what the thread inherits */
	if (thread == NULL)
		pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	errnum = pthread_create(thread == NULL ? &detached : thread, &small, main, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&small);
	return errnum;
}

/* ---- the timer ---- */

#define WAKEUP_SIGNAL SIGIO

static timer_t timer;
static volatile sig_atomic_t ticking;
static volatile sig_atomic_t pause_ms;
static struct sigaction old_action;
static sigset_t old_mask;

static void fire_after(int64_t after)
{
	struct itimerspec when = {.it_value = {(time_t)(after / SECOND), (long)(after % SECOND)}};

	timer_settime(timer, 0, &when, NULL);
}

/* The delivery interrupts the call.  The pause doubles: at a constant pace, a process that is
 * traced, or that hardly runs, would do nothing but handle the signal. */
static void wakeup_fire(int signo)
{
	int saved = errno, ms = pause_ms;

	(void)signo;
	if (ticking)
		fire_after(ms * (int64_t)MILLISECOND);
	if (ms < 64)
		pause_ms = 2 * ms;
	errno = saved;
}

int wakeup_set(int64_t after, struct error *error)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = WAKEUP_SIGNAL};
	/* no SA_RESTART: calls must return */
	struct sigaction action = {.sa_handler = wakeup_fire};
	sigset_t only_wakeup = signals_only(WAKEUP_SIGNAL);

	if (after == INT64_MAX) {
		wakeup_off();
		return 0;
	}
	if (!ticking) {
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
			return error_set(error, ERROR_SYSTEM, "cannot set a timer");
		sigaction(WAKEUP_SIGNAL, &action, &old_action);
		sigprocmask(SIG_UNBLOCK, &only_wakeup, &old_mask);
	}
	ticking = true;
	pause_ms = 1;
	fire_after(after > 0 ? after : 1);
	return 0;
}

/* A signal that is pending then was delivered to wakeup_fire() before the timer was gone: none
 * reaches the command. */
void wakeup_off(void)
{
	if (!ticking)
		return;
	ticking = false;
	timer_delete(timer);
	sigaction(WAKEUP_SIGNAL, &old_action, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

/* ---- the parent ---- */

static pid_t parent;   /* 0: in another PID namespace: its end cannot be seen otherwise */
static pid_t watching; /* this process; 0: parent_watch() has not been called */
/* A stopped process acts on SIGCONT, and on no other signal but KILL.  It comes from others, too,
 * and from the kernel also when only the thread of the parent ends that started this process: the
 * parent's PID tells.  Where that cannot be seen, it has to be a signal that nobody else sends. */
#define PARENT_SIGNAL (parent == 0 ? SIGPWR : SIGCONT)

bool parent_ended_by(int signo)
{
	return watching != 0 && watching == getpid() && signo == PARENT_SIGNAL &&
	       (parent == 0 || getppid() != parent);
}

static void end_with_parent(int signo)
{
	if (!parent_ended_by(signo))
		return;
	raise(SIGTERM);
	_exit(128 + SIGTERM); /* process 1 of a container */
}

bool parent_watch(void)
{
	struct sigaction action = {.sa_handler = end_with_parent, .sa_flags = SA_RESTART};
	sigset_t heeded = signals_only(SIGTERM);

	sigaddset(&heeded, PARENT_SIGNAL);
	parent = getppid();
	watching = getpid();
	CRASH_POINT("parent.noted");
	if (signals_ignored(SIGTERM))
		signal(SIGTERM, SIG_DFL);
	sigaction(PARENT_SIGNAL, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &heeded, NULL);
	return prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL) == 0 && getppid() == parent;
}
