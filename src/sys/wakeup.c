/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "sys/deadline.h"
#include "sys/signals.h"
#include "sys/wakeup.h"

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

/* The delivery interrupts the call.  The pause doubles: at a constant pace, a process that is traced, or that
 * hardly runs, would do nothing but handle the signal. */
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
	struct sigaction action = {.sa_handler = wakeup_fire}; /* no SA_RESTART: calls must return */
	sigset_t only_wakeup = signals_only(WAKEUP_SIGNAL);

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

/* A signal that is pending then was delivered to wakeup_fire() before the timer was gone: none reaches the command. */
void wakeup_off(void)
{
	if (!ticking)
		return;
	ticking = false;
	timer_delete(timer);
	sigaction(WAKEUP_SIGNAL, &old_action, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}
