/* caller.h - the process that we hold a lock for: the one that has started us, as a rule. */
#ifndef SEMLOCK_CALLER_H
#define SEMLOCK_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

struct caller {
	pid_t pid;   /* 0: outside our PID namespace, and nothing can be known of it; -1: it has ended */
	int process; /* a pidfd of it, which becomes readable at its end; -1: there is none to be had */
};

/* Find out who it is. */
struct caller caller_find(void);

/* The process PID. */
struct caller caller_of(pid_t pid);

/* Does it live? */
bool caller_lives(const struct caller *caller);

#endif
