/* naive.h - lockers as they are often written, each with a hole: the torture must find it. */
#ifndef SEMLOCK_TEST_NAIVE_H
#define SEMLOCK_TEST_NAIVE_H

/* naive-unchecked: flock, the file unlinked at the end, no look at the name afterwards.
 * naive-break: a file with a PID; a dead one's is looked at, and then unlinked.
 * naive-empty: O_EXCL, and then the PID; an empty file is waited for.
 * naive-swap: mkdir, a second one as a guard, renamed over a dead one's. */
int naive_is(const char *name);

/* Take LOCK, run "SELF inside WORD", let go.
 * Returns the exit status. */
int naive_run(const char *name, const char *lock, const char *self, const char *word);

#endif
