/* SPDX-License-Identifier: MIT */
/* sys/listeners.h - the abstract sockets in this network namespace that accept connections. */
#ifndef SEMLOCK_SYS_LISTENERS_H
#define SEMLOCK_SYS_LISTENERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Call SEE with the NAME of each of these sockets, until SEE returns false.  NAME lacks the zero
 * byte that precedes it in the kernel ("@" in /proc).  USER has created the socket; (uid_t)-1: the
 * kernel does not say (before Linux 5.3).  Any user may choose any name.  If the kernel's answer
 * breaks off, SEE may get a name twice. */
void listeners_each(bool (*see)(const char *name, uid_t user, void *context), void *context);

#endif
