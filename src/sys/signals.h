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

/* Block all signals in the calling thread; *BEFORE: its mask so far. */
void signals_block_all(sigset_t *before);

/* The signals that ask a process to end: HUP, INT, QUIT and TERM. */
enum { ENDING_SIGNALS = 4 };
extern const int ending_signals[ENDING_SIGNALS];

/* Is SIGNO one of them? */
bool is_ending_signal(int signo);

/* Is SIGNO ignored?  (Even then it is queued if it is blocked.) */
bool signals_ignored(int signo);

/* sigtimedwait(2) for at most TIME ns; INT64_MAX: no limit. */
int signals_wait(const sigset_t *signals, siginfo_t *info, int64_t time);

/* What one semlock tells another with a signal.  Any process can send the same mark, but none does
 * so by accident. */
enum signal_mark {
	MARK_REPLACED = 0x736c6b72, /* --replace or --toggle sent it: for --log */
	MARK_OF_GROUP,              /* the terminal sent it to the whole process group */
	MARK_OF_PARENT,             /* --die-with-parent: the parent has ended */
	MARK_ASKS,
	MARK_ANSWERS /* subreaper_lives() */
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
 * Its signal is SIGIO: so a descriptor with O_ASYNC wakes the call as well.  It is not SIGALRM,
 * because the caller may have that blocked, ignored or pending ("alarm(5), exec semlock"), and the
 * command inherits it unchanged. */

/* AFTER nanoseconds from now, and until wakeup_off(), a call that sleeps fails with EINTR.  A
 * second wakeup_set() moves the first; AFTER INT64_MAX is wakeup_off().  Returns 0, or -1 with
 * ERROR filled: no timer is left. */
int wakeup_set(int64_t after, struct error *error);

/* Stop the timer, and restore the signal's disposition and mask. */
void wakeup_off(void);

/* ---- the end of the process that started this one ---- */

/* When process PARENT (0: the one that started this process) ends, this process ends as by SIGTERM,
 * or, where all signals are blocked, receives a signal: see parent_ended_by().  SIGTERM is no
 * longer ignored or blocked.  A child does not inherit this.  PARENT_ENDED: PARENT has ended
 * already; PARENT_UNSEEN, with errno set: its end cannot be seen. */
enum parent_state { PARENT_WATCHED, PARENT_ENDED, PARENT_UNSEEN };
enum parent_state parent_watch(pid_t parent);

/* Call this after the last fork(2).  If parent_watch()'s PARENT did not start this process, no
 * signal tells of its end: start a thread that watches it.  Otherwise do nothing.  Returns 0, or -1
 * with errno set: no thread can be started. */
int parent_watch_from_afar(void);

/* SIGNO was received, for instance SIGCONT or SIGPWR: did parent_watch() ask for it, and has the
 * parent ended? */
bool parent_ended_by(int signo);

/* Does INFO's SIGCONT mean only that the thread that started this process has ended, while the rest
 * of the parent goes on? */
bool parent_lost_thread(const siginfo_t *info);

#endif
