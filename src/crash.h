/* crash.h - named places between two steps whose order matters, where a test may kill
 * us, or stop us to look around.  SEMLOCK_CRASH=lock.taken:kill, or :stop; nothing of
 * this is in a normal build. */
#ifndef SEMLOCK_CRASH_H
#define SEMLOCK_CRASH_H

#include <config.h>

#ifdef ENABLE_CRASH_POINTS
void crash_point(const char *name);
#define CRASH_POINT(name) crash_point(name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
