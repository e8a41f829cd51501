/* SPDX-License-Identifier: MIT */
/* sys/crash_points.h - named places between two steps whose order matters, where a test kills,
 * stops or delays semlock; and named calls that a test makes fail.
 *
 * The variable SEMLOCK_CRASH says what happens at which place.  It is a list, separated by blanks,
 * of "lock.taken:kill", "lock.taken:stop", "lock.taken:hang" (sleep until SIGCONT),
 * "lock.taken:wait=100" (ms) or "lockdir.tmpfile:fail=95" (an errno).  SEMLOCK_CRASH_LOG names a
 * file: semlock appends to it the name of each place that it passes, and "lock.taken hangs" when it
 * begins to sleep there.  A normal build has none of this. */
#ifndef SEMLOCK_SYS_CRASH_POINTS_H
#define SEMLOCK_SYS_CRASH_POINTS_H

#include <config.h>

#include <stdbool.h>

#ifdef ENABLE_CRASH_POINTS
void crash_point(const char *name);
bool fault_point(const char *name); /* true, with errno set: act as if the call here failed */
#define CRASH_POINT(name) crash_point(name)
#define FAULT_POINT(name) fault_point(name)
#else
#define CRASH_POINT(name) ((void)0)
#define FAULT_POINT(name) false
#endif

#endif
