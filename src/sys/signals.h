/* sys/signals.h - signals by their names, and sets of them. */
#ifndef SEMLOCK_SYS_SIGNALS_H
#define SEMLOCK_SYS_SIGNALS_H

#include <signal.h>

/* The number of "TERM", "SIGTERM", "term" or "15"; -1: no such signal. */
int signals_number(const char *text);

/* Remove from SET all that are in SIGNALS. */
void signals_take_out(sigset_t *set, const sigset_t *signals);

#endif
