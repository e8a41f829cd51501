/* SPDX-License-Identifier: MIT */
/* sys/pipe_holders.h - the processes that must not outlive a lock: those that have its pipe open, and the
 * descendants of the process that started the command. */
#ifndef SEMLOCK_SYS_PIPE_HOLDERS_H
#define SEMLOCK_SYS_PIPE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pipe_holders {
	int pipe;                 /* a descriptor of the pipe; -1: no pipe */
	pid_t ancestor;           /* the descendants of this process; 0: none */
	unsigned long long since; /* no child of ANCESTOR that started earlier: process_stat()'s ticks */
	pid_t except;             /* never this process, nor its descendants; 0: no exception */
	pid_t unreaped;           /* this child stays a zombie, and all others are waited for; 0: no child is */
	pid_t refused;            /* filled: a process that this one may not signal */
};

/* Send SIGNO to all holders but this process; 0: only count.  Returns how many live, or have been reaped.  A process
 * that is forked during the search may be missed: call again until no process is left, and none has been reaped. */
size_t pipe_holders_signal(struct pipe_holders *holders, int signo);

/* Reap all children that have ended.  Returns whether there was one. */
bool pipe_holders_reap(void);

#endif
