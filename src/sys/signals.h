/* SPDX-License-Identifier: MIT */
/* sys/signals.h - signal masks, waiting for signals, threads that receive none; a timer that ends a
 * sleep; and the end of the process that started this one, as a signal. */
#ifndef SEMLOCK_SYS_SIGNALS_H
#define SEMLOCK_SYS_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/error.h"

/* The set that contains only SIGNO. */
sigset_t signals_only(int signo);

/* Block all signals in the calling thread.  *BEFORE becomes its mask until now; BEFORE may be
 * NULL. */
void signals_block_all(sigset_t *before);

/* The signals that ask a process to end: HUP, INT, QUIT and TERM. */
enum { ENDING_SIGNALS = 4 };
extern const int ending_signals[ENDING_SIGNALS];

/* Is SIGNO one of ending_signals? */
bool is_ending_signal(int signo);

/* Does this process ignore SIGNO?  (While SIGNO is blocked, the kernel queues it all the same.) */
bool signals_ignored(int signo);

/* sigtimedwait(2) for at most TIME ns; INT64_MAX: no limit. */
int signals_wait(const sigset_t *signals, siginfo_t *info, int64_t time);

/* The value that comes with a signal, by which one semlock tells another what the signal means.
 * Any process can send the same value, but none does so by accident. */
enum signal_mark {
	MARK_REPLACED = 0x736c6b72, /* --replace or --toggle sent it: for --log */
	MARK_OF_GROUP,              /* the terminal sent it to the whole process group */
	MARK_OF_PARENT,             /* --die-with-parent: the parent has ended */
	MARK_ASKS,
	MARK_ANSWERS /* both: see subreaper_lives() */
};

/* Was INFO's signal sent with MARK? */
bool signal_has_mark(const siginfo_t *info, enum signal_mark mark);

/* Start THREAD (NULL: nobody will join it), which runs MAIN(ARGUMENT) on a small stack and receives
 * no signals.  Returns 0, or an errno. */
int signals_free_thread(pthread_t *thread, void *(*main)(void *), void *argument);

/* ---- a timer that wakes a lock call which sleeps in the kernel ----
 *
 * A one-shot timer may fire just before the call goes to sleep: then the call sleeps forever.  This
 * timer fires again, after 4, 8, 16 and at last every 64 ms, until it is turned off.
 *
 * Its signal is SIGIO, so that a descriptor with O_ASYNC wakes the call as well.  SIGALRM would not
 * do: the caller may have blocked or ignored it, or have an alarm pending ("alarm(5), exec
 * semlock"), and the command must inherit that unchanged. */

/* From AFTER ns from now until wakeup_off(), interrupt every call that sleeps: it fails with EINTR.
 * A second wakeup_set() replaces the first.  AFTER INT64_MAX means wakeup_off().  Returns 0, or -1
 * with ERROR filled: the kernel has no timer left. */
int wakeup_set(int64_t after, struct error *error);

/* Stop the timer, and restore the signal's disposition and mask. */
void wakeup_off(void);

/* ---- the end of the process that started this one ---- */

/* Watch process PARENT (0: the process that started this one).  When PARENT ends, this process dies
 * as by SIGTERM.  If it has all signals blocked, it receives a signal instead: see
 * parent_ended_by().  From now on, SIGTERM is neither ignored nor blocked.  A child does not
 * inherit the watch.  Returns PARENT_WATCHED; PARENT_ENDED if PARENT has ended already; or
 * PARENT_UNSEEN, with errno set, if the end of PARENT cannot be seen. */
enum parent_state { PARENT_WATCHED, PARENT_ENDED, PARENT_UNSEEN };
enum parent_state parent_watch(pid_t parent);

/* Call this after the last fork(2).  If parent_watch()'s PARENT did not start this process, no
 * signal reports its end: start a thread that watches PARENT.  Otherwise do nothing.  Returns 0, or
 * -1 with errno set: no thread can be started. */
int parent_watch_from_afar(void);

/* SIGNO was received: does it report that the process of parent_watch() has ended?  (The signal is
 * SIGCONT or SIGPWR, which may also come for another reason.) */
bool parent_ended_by(int signo);

/* Does INFO's SIGCONT mean only that the thread that started this process has ended, while the rest
 * of the parent goes on? */
bool parent_lost_thread(const siginfo_t *info);

#endif
