/* SPDX-License-Identifier: MIT */
/* sys/parent.h - the end of the process that started this one, as a signal. */
#ifndef SEMLOCK_SYS_PARENT_H
#define SEMLOCK_SYS_PARENT_H

#include <signal.h>
#include <stdbool.h>

/* No program but init uses it.  A SIGTERM could come from anybody, and the kernel sends this one also when only the thread
 * of the parent ends that started this process: ask parent_ended(). */
enum { PARENT_SIGNAL = SIGPWR };

/* From now on the end of the parent ends this process, as SIGTERM does, or, where all signals are blocked, is received
 * as a signal: parent_ended().  SIGTERM is neither ignored nor blocked any more.  Not inherited by a child.  Returns
 * false if the parent has ended already. */
bool parent_watch(void);

/* Does PARENT_SIGNAL tell this process of its parent? */
bool parent_is_watched(void);

/* This process has received PARENT_SIGNAL: has its parent ended? */
bool parent_ended(void);

#endif
