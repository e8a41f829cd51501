/* signals.h - signals by their names. */
#ifndef SEMLOCK_SIGNALS_H
#define SEMLOCK_SIGNALS_H

/* "TERM", "SIGTERM", "term" or "15"; -1: there is no such signal. */
int signals_number(const char *text);

#endif
