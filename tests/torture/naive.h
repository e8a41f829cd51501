/* SPDX-License-Identifier: MIT */
/* naive.h - lockers as they are often written, each with a hole: the torture must find it. */
#ifndef SEMLOCK_TEST_NAIVE_H
#define SEMLOCK_TEST_NAIVE_H

/* naive-unchecked: flock, the file unlinked at the end, the name not checked afterwards.
 * naive-break: a file with a PID; a dead holder's file is read, and then unlinked.
 * naive-empty: O_EXCL, and then the PID; an empty file is waited for.
 * naive-swap: mkdir, a second directory as a guard, renamed over a dead holder's. */
int naive_is(const char *name);

/* Takes LOCK, runs "SELF inside WORD", releases.
 * Returns the exit status. */
int naive_run(const char *name, const char *lock, const char *self, const char *word);

#endif
