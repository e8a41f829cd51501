/* holders - the processes that inherited the lock: those that still have our input pipe open. */
#ifndef LOCKSMITH_HOLDERS_H
#define LOCKSMITH_HOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends sig to every process, except this one and the one called except (0: nobody), that has the pipe behind
   fd open. Processes of other
   users cannot be looked into and are passed over. */
void holders_signal(int fd, int sig, pid_t except);

/* The same to every process of which HOLDS, called with its pid and CONTEXT, says so. */
void holders_signal_if(bool (*holds)(long pid, void *context), void *context, int sig, pid_t except);

#endif
