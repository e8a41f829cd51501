/* SPDX-License-Identifier: MIT */
/* sys/signals.h - signal masks, waiting for signals, threads that receive none; a timer that ends a
 * sleep, and the end of the process that started this one, as signals. */
#ifndef SEMLOCK_SYS_SIGNALS_H
#define SEMLOCK_SYS_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/error.h"

/* The set of SIGNO alone. */
sigset_t signals_only(int signo);

/* Block all signals in the calling thread; *BEFORE: its mask until now. */
void signals_block_all(sigset_t *before);

/* Is SIGNO ignored?  A signal that is blocked is queued all the same. */
bool signals_ignored(int signo);

/* sigtimedwait(2) of at most TIME ns; INT64_MAX: without a limit. */
int signals_wait(const sigset_t *signals, siginfo_t *info, int64_t time);

/* What one semlock tells another with a signal.  Any process can send the same, and none does by
 * accident. */
enum signal_mark {
	MARK_REPLACED = 0x736c6b72, /* the signal is of --replace or --toggle: for --log */
	MARK_OF_GROUP,              /* the terminal has sent it to the whole process group */
	MARK_OF_PARENT,             /* --die-with-parent: the parent has ended */
	MARK_ASKS,
	MARK_ANSWERS /* subreaper_lives() */
};

/* Was the signal of INFO sent with MARK? */
bool signal_has_mark(const siginfo_t *info, enum signal_mark mark);

/* Start THREAD (NULL: it is not waited for), which runs MAIN(ARGUMENT) on a small stack and
 * receives no signal. Returns 0, or an errno. */
int signals_free_thread(pthread_t *thread, void *(*main)(void *), void *argument);

/* ---- a timer that wakes a lock call which sleeps in the kernel ----
 *
 * A one-shot timer may fire just before the call goes to sleep, which then sleeps for ever.  This
 * timer fires again, after 1, 2, 4 and at last every 64 ms, until it is turned off.
 *
 * Its signal is SIGIO: a descriptor with O_ASYNC wakes the call as well.  The caller may have
 * SIGALRM blocked, ignored or pending ("alarm(5), exec semlock"), and the command inherits that
 * unchanged. */

/* From AFTER nanoseconds on, a call that sleeps fails with EINTR, until wakeup_off(); a second
 * wakeup_set() moves the first, and AFTER INT64_MAX is wakeup_off().  Returns 0, or -1 with ERROR
 * filled: no timer is left. */
int wakeup_set(int64_t after, struct error *error);

/* Stop the timer, and restore the signal's disposition and the mask. */
void wakeup_off(void);

/* ---- the end of the process that started this one ---- */

/* From now on the end of the process PARENT (0: of the one that started this process) ends this
 * process, as SIGTERM does, or, where all signals are blocked, is received as a signal:
 * parent_ended_by().  SIGTERM is neither ignored nor blocked any more.  Not inherited by a child.
 * PARENT_ENDED: it has ended already; PARENT_UNSEEN, with errno set: its end cannot be seen. */
enum parent_state { PARENT_WATCHED, PARENT_ENDED, PARENT_UNSEEN };
enum parent_state parent_watch(pid_t parent);

/* After the last fork(2): the same for a PARENT that has not started this process, whose end no
 * signal tells.  Does nothing else.  Returns 0, or -1 with errno set: no thread can be started. */
int parent_watch_from_afar(void);

/* SIGNO has been received, SIGCONT or SIGPWR among others: has parent_watch() asked for it, and the
 * parent ended? */
bool parent_ended_by(int signo);

/* Does the SIGCONT of INFO say no more than that the thread has ended which started this process?
 * The parent goes on then. */
bool parent_lost_thread(const siginfo_t *info);

#endif
