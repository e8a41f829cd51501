/* sys/crash_points.h - named places between two steps whose order matters, where a test may kill
 * us, or stop us to look around; and named calls that a test may have fail.
 * SEMLOCK_CRASH=lock.taken:kill, or :stop, or lockdir.tmpfile:fail=95 (an errno), several
 * with blanks between.  SEMLOCK_CRASH_LOG=FILE: the names of those passed are added to FILE.
 * Nothing of this is in a normal build. */
#ifndef SEMLOCK_SYS_CRASH_POINTS_H
#define SEMLOCK_SYS_CRASH_POINTS_H

#include <config.h>

#include <stdbool.h>

#ifdef ENABLE_CRASH_POINTS
void crash_point(const char *name);
bool fault_point(const char *name); /* true, with errno set: the call is to have failed */
#define CRASH_POINT(name) crash_point(name)
#define FAULT_POINT(name) fault_point(name)
#else
#define CRASH_POINT(name) ((void)0)
#define FAULT_POINT(name) false
#endif

#endif
