/* caller.h - the process that has started us: a shell, as a rule. */
#ifndef SEMLOCK_CALLER_H
#define SEMLOCK_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

struct caller {
	pid_t pid;
	int process; /* a pidfd of it, which becomes readable at its end; -1: there is none to be had */
};

/* Find out who it is.  If it has ended already, PID is 0. */
struct caller caller_find(void);

/* Does it live? */
bool caller_lives(const struct caller *caller);

/* Send SIGNO to it, and to nobody else, whoever has its number now. */
void caller_signal(const struct caller *caller, int signo);

#endif
