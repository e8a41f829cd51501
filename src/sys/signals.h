/* SPDX-License-Identifier: MIT */
/* sys/signals.h - signal masks, waiting for signals, and threads that receive none. */
#ifndef SEMLOCK_SYS_SIGNALS_H
#define SEMLOCK_SYS_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The set of SIGNO alone. */
sigset_t signals_only(int signo);

/* Block all signals in the calling thread; *BEFORE: its mask until now. */
void signals_block_all(sigset_t *before);

/* Is SIGNO ignored?  A signal that is blocked is queued all the same. */
bool signals_ignored(int signo);

/* sigtimedwait(2) of at most TIME ns; INT64_MAX: without a limit. */
int signals_wait(const sigset_t *signals, siginfo_t *info, int64_t time);

/* Start THREAD (NULL: it is not waited for), which runs MAIN(ARGUMENT) on a small stack and receives no signal.
 * Returns 0, or an errno. */
int signals_free_thread(pthread_t *thread, void *(*main)(void *), void *argument);

#endif
