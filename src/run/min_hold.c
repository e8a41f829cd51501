#include <config.h>

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "sys/deadline.h"
#include "run/min_hold.h"
#include "run/relay.h"

static int64_t began;

void held_begins(void)
{
	began = clock_now();
}

int64_t held_time(void)
{
	return began == 0 ? 0 : clock_now() - began;
}

/* A blocked signal is queued even if it is ignored, as HUP is under nohup(1): leave it out.  SIGCONT comes
 * when the relay has been killed. */
static void end_signals(sigset_t *signals)
{
	static const int enough[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct sigaction action;

	sigemptyset(signals);
	sigaddset(signals, SIGCONT);
	for (size_t i = 0; i < sizeof enough / sizeof *enough; i++)
		if (sigaction(enough[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(signals, enough[i]);
}

/* Let Ctrl-Z stop semlock itself: supervise() stops it only together with the command, which has ended. */
static void let_stop(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
}

void held_at_least(int64_t duration)
{
	struct timespec pause;
	sigset_t signals;
	int64_t left;
	int signo = 0;

	end_signals(&signals);
	let_stop();
	while ((left = duration - held_time()) > 0 && (signo <= 0 || signo == SIGCONT) && !relay_killed()) {
		left = left > SECOND ? SECOND : left;
		pause = (struct timespec){(time_t)(left / SECOND), (long)(left % SECOND)};
		signo = sigtimedwait(&signals, NULL, &pause);
		if (signo < 0 && errno != EAGAIN && errno != EINTR)
			nanosleep(&pause, NULL); /* sigtimedwait(2) is refused, by a sandbox, say */
	}
}
