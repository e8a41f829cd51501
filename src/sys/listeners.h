/* SPDX-License-Identifier: MIT */
/* sys/listeners.h - the abstract sockets of this network namespace that processes listen on. */
#ifndef SEMLOCK_SYS_LISTENERS_H
#define SEMLOCK_SYS_LISTENERS_H

#include <stdbool.h>

/* Call SEE with the name of each, without the zero (in /proc: "@") before it, until it returns
 * false.  If the kernel breaks off, a name may be seen twice. */
void listeners_each(bool (*see)(const char *name, void *context), void *context);

#endif
