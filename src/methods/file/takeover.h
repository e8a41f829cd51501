/* SPDX-License-Identifier: MIT */
/* methods/file/takeover.h - a lock that has the name that we want: is its holder alive?  Wait for the
 * holder, or take the lock over from a dead one. */
#ifndef SEMLOCK_METHODS_FILE_TAKEOVER_H
#define SEMLOCK_METHODS_FILE_TAKEOVER_H

#include "methods/file/lockdir.h"
#include "methods/file/process_alive.h"

/* Take over the lock under the name of LOCK; with SLEEP, wait for its holder.  AGAIN: it is gone, or
 * has changed: try to publish now.  BUSY: it is held; with SLEEP, a signal ended the sleep.  FAILED,
 * with ERROR filled: it is no lock of this method. */
enum outcome takeover_attempt(struct lock *lock, enum wait wait, struct error *error);

/* The verdict on RECORD, of an object with STATUS that no process has under flock(2).  NOW: ns since
 * 1970, for a caller that changes nothing; 0: ask the file system, by making a file. */
enum verdict takeover_judge(const struct lock *lock, const struct record *record,
    const struct stat *status, int64_t now);

/* The lock cannot be taken over: unflock FD, which has its name (-1: not open), and with SLEEP wait for its release.
 * PID: its living holder; 0: none is known.  BUSY, or what foreign_holder_await() says. */
enum outcome takeover_wait(struct lock *lock, int fd, enum wait wait, pid_t pid);

/* For a file that got the lock's name by rename(2) or link(2), and may be older than the lock: make
 * the mtime in STATUS the time of that, its ctime, where the file system notes it. */
void takeover_note_naming(struct stat *status);

/* The same, for a regular file with a second name only: ln(1) of a file that stays is a lock. */
void takeover_note_linking(struct stat *status);

/* A method's idle: is the lock free, or its holder dead? */
enum outcome takeover_idle(struct lock *lock, struct error *error);

/* May the lock be taken over?  Its holder is dead, or UNKNOWN and without a sign of life for
 * LOCK->stale ns. */
bool takeover_allowed(struct lock *lock, enum verdict verdict, const struct stat *status);

#endif
