#include <config.h>

#include <errno.h>
#include <poll.h>

#include "sys/deadline.h"
#include "run/min_hold.h"
#include "run/relay.h"
#include "sys/signals.h"

static int64_t began;

void held_begins(void)
{
	began = clock_now();
}

int64_t held_time(void)
{
	return began == 0 ? 0 : clock_now() - began;
}

/* Leave out those that are ignored, as HUP is under nohup(1).  SIGCONT comes when the relay has been killed. */
static sigset_t end_signals(void)
{
	static const int enough[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	sigset_t signals = signals_only(SIGCONT);

	for (size_t i = 0; i < sizeof enough / sizeof *enough; i++)
		if (!signals_ignored(enough[i]))
			sigaddset(&signals, enough[i]);
	return signals;
}

void held_at_least(int64_t duration)
{
	sigset_t signals = end_signals(), stop = signals_only(SIGTSTP);
	int64_t left;
	int signo = 0;

	/* Let Ctrl-Z stop semlock itself: supervise() stops it only together with the command, which has ended. */
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	while ((left = duration - held_time()) > 0 && (signo <= 0 || signo == SIGCONT) && !relay_killed()) {
		left = left > SECOND ? SECOND : left;
		signo = signals_wait(&signals, NULL, left);
		if (signo < 0 && errno != EAGAIN && errno != EINTR)
			poll(NULL, 0, (int)(left / MILLISECOND) + 1); /* sigtimedwait(2) is refused, by a sandbox, say */
	}
}
