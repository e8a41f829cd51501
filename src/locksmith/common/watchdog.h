/* locksmith/common/watchdog.h - stops the command in time when semlock cannot.

   Semlock stops the command of a lost lock; the watchdog sends KILL just before the lease ends. If
   semlock was killed, or is stopped, the watchdog also sends TERM, at two thirds of the lease. It
   signals the command and every process that has the write end of the helper's input, but not
   semlock. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_WATCHDOG_H
#define SEMLOCK_LOCKSMITH_COMMON_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Stores the parent, semlock. Call it first: if the parent ends before, its end is not noticed. */
void watchdog_start(void);

/* A descriptor that becomes readable when semlock ends, or -1. */
int watchdog_parent_fd(void);

/* True if semlock has ended. */
bool watchdog_parent_gone(void);

/* Watches the command, process pid. 0, or -1: there is no such process. */
int watchdog_child(pid_t pid);

/* The lock is held until deadline (CLOCK_BOOTTIME) by a lease of so many nanoseconds. */
void watchdog_lease(int64_t deadline, int64_t lease);

/* The lock is lost: TERM is due now, KILL a second later, or when the lease ends. */
void watchdog_lost(void);

/* The lock is released: no process is to be stopped any more. */
void watchdog_over(void);

/* The moment at which watchdog_act is due next, or NEVER. */
int64_t watchdog_next(void);

/* Sends the signal that is due. Returns true once KILL was sent. */
bool watchdog_act(void);

#endif
