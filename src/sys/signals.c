/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>
#include <time.h>

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
