/* SPDX-License-Identifier: MIT */
/* hold/sandbox.h - errors of system calls that fail only because a sandbox forbids them.
 *
 * In the foreground, semlock's own processes make no such call: read(2) and write(2), on pipes and
 * socketpair(2), are enough (start, subreaper, hold); a lock on a server also needs sendmsg(2).  A
 * hold in the background has a socket with a name, to which unrelated processes connect.  Sandboxes
 * forbid that along with the network. */
#ifndef SEMLOCK_HOLD_SANDBOX_H
#define SEMLOCK_HOLD_SANDBOX_H

#include "report/error.h"

/* A call on a socket has failed, with errno: fill ERROR with WHAT, and errno's text.  If a sandbox
 * is the likely reason, the kind is ERROR_UNAVAILABLE, and the text says that, and what to do
 * INSTEAD; otherwise the kind is ERROR_SYSTEM.  Returns -1. */
int sandbox_error(struct error *error, const char *what, const char *instead);

#endif
