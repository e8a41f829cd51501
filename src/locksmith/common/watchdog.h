/* locksmith/common/watchdog.h - stops the command in time when nobody else does.

   While semlock is at work, stopping the command of a lost lock is its work, and the locksmith only
   steps in with KILL just before the lease ends. When semlock was SIGKILLed, or is stopped, the
   locksmith does all of it: TERM at two thirds of the lease, KILL before its end, to the command and
   to every process that inherited the write end of the locksmith's input; but not to semlock. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_WATCHDOG_H
#define SEMLOCK_LOCKSMITH_COMMON_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Remembers the parent (semlock). Call it first: a parent that ends before cannot be noticed. */
void watchdog_start(void);

/* Descriptor that becomes readable when the parent ends, or -1. */
int watchdog_core_fd(void);

/* True when the parent has ended. */
bool watchdog_core_gone(void);

/* The command is pid, a living process. 0, or -1 if there is none of that number. */
int watchdog_child(pid_t pid);

/* The lock is held until deadline (BOOTTIME), by a lease of so many nanoseconds. */
void watchdog_lease(int64_t deadline, int64_t lease);

/* The lock is lost already: TERM now, KILL a second later or when the lease ends. */
void watchdog_lost(void);

/* The lock is given back: nobody relies on it any more, and nobody is stopped. */
void watchdog_over(void);

/* The moment at which watchdog_act has something to do next, or NEVER. */
int64_t watchdog_next(void);

/* Does what is due. Returns true once KILL has been sent. */
bool watchdog_act(void);

#endif
