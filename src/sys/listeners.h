/* SPDX-License-Identifier: MIT */
/* sys/listeners.h - the abstract sockets in this network namespace that accept connections. */
#ifndef SEMLOCK_SYS_LISTENERS_H
#define SEMLOCK_SYS_LISTENERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Call SEE with the name of each, without the zero (in /proc: "@") before it, until SEE returns
 * false.  USER created the socket; (uid_t)-1: the kernel does not say (before Linux 5.3).  Any user
 * may choose any name.  If the kernel's answer breaks off, a name may come twice. */
void listeners_each(bool (*see)(const char *name, uid_t user, void *context), void *context);

#endif
