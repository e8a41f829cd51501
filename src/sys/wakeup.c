#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "sys/wakeup.h"
#include "sys/deadline.h"

#define ALARM_SIGNAL SIGRTMIN

static void wake(int signo);

static bool listening;
/* Of several threads that wait, whichever the signal comes to reads these. */
static atomic_bool ticking;
static atomic_int pause_ms;
static struct sigaction old_action;
static sigset_t old_mask;

int alarm_signal(void)
{
	return ALARM_SIGNAL;
}

void alarm_listen(void)
{
	struct sigaction action = {.sa_handler = wake}; /* no SA_RESTART: calls must return */
	sigset_t just_it;

	if (listening)
		return;
	listening = true;
	sigaction(ALARM_SIGNAL, &action, &old_action);
	sigemptyset(&just_it);
	sigaddset(&just_it, ALARM_SIGNAL);
	sigprocmask(SIG_UNBLOCK, &just_it, &old_mask);
}

static timer_t timer;

static int start(struct error *error)
{
	struct sigevent status_fd_event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = ALARM_SIGNAL};

	if (timer_create(CLOCK_MONOTONIC, &status_fd_event, &timer) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot set a timer");
	return 0;
}

static void tick_in(int64_t after)
{
	struct itimerspec when = {.it_value = {(time_t)(after / SECOND), (long)(after % SECOND)}};

	timer_settime(timer, 0, &when, NULL);
}

static void stop(void)
{
	timer_delete(timer);
}

/* That the call is interrupted is the point; and the next, if this came too early for it.  After
 * twice the time: at one pace, a process that is traced, or that hardly gets to run, would do
 * nothing any more but hear it. */
static void wake(int signo)
{
	int saved = errno, ms = pause_ms;

	(void)signo;
	if (ticking)
		tick_in(ms * (int64_t)MILLISECOND);
	if (ms < 64)
		pause_ms = 2 * ms;
	errno = saved;
}

int alarm_set(int64_t after, struct error *error)
{
	alarm_listen();
	if (!ticking && start(error) != 0)
		return -1;
	ticking = true;
	pause_ms = 1;
	tick_in(after > 0 ? after : 1);
	return 0;
}

void alarm_off(void)
{
	if (ticking) {
		ticking = false;
		stop();
	}
	/* A tick that is under way is delivered here, to our handler, not to the command. */
	if (listening) {
		sigaction(ALARM_SIGNAL, &old_action, NULL);
		sigprocmask(SIG_SETMASK, &old_mask, NULL);
	}
	listening = false;
}
