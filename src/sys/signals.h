/* sys/signals.h - signals by their names, and sets of them. */
#ifndef SEMLOCK_SYS_SIGNALS_H
#define SEMLOCK_SYS_SIGNALS_H

#include <signal.h>

/* "TERM", "SIGTERM", "term" or "15"; -1: there is no such signal. */
int signals_number(const char *text);

/* Take out of SET whatever is in SIGNALS. */
void signals_take_out(sigset_t *set, const sigset_t *signals);

#endif
