/* methods/file/takeover.h - what stands in the way: another's lock under the name that we want.
 * Whether its holder lives; waiting for it; taking over from the dead. */
#ifndef SEMLOCK_METHODS_FILE_TAKEOVER_H
#define SEMLOCK_METHODS_FILE_TAKEOVER_H

#include "methods/file/lockdir.h"
#include "methods/file/process_alive.h"

/* Deal with it.  AGAIN: it is gone, or something has happened: try to publish now.  BUSY: it
 * is held; with SLEEP: a signal ended the sleep.  FAILED: no lock of this method. */
enum outcome takeover_attempt(struct lock *lock, enum wait wait, struct error *error);

/* The verdict on RECORD, of an object with STATUS that no process has under flock(2).  NOW, in ns
 * since 1970, is for a caller that only looks; 0: the file system is asked, by making a file. */
enum verdict takeover_judge(const struct lock *lock, const struct record *record,
    const struct stat *status, int64_t now);

/* A file that was there before it got the lock's name, by rename(2) or link(2), is older than the
 * lock: when that was, its ctime says, where the file system notes it.  STATUS then says so, too. */
void takeover_note_naming(struct stat *status);

/* The same of a file that still has another name, too: ln(1) of a file that stays is a lock. */
void takeover_note_linking(struct stat *status);

/* Would we wait for ourselves?  True, with ERROR filled, when the living holder of RECORD, which
 * CARRIER carries, is an ancestor of this process, and CARRIER is to be trusted. */
bool takeover_is_ancestor(const struct record *record, const struct stat *carrier, struct error *error);

/* A method's idle: is it free, or its holder dead? */
bool takeover_idle(struct lock *lock);

/* May it be taken over?  Dead, or unknown and without a sign of life for LOCK->stale. */
bool takeover_allowed(struct lock *lock, enum verdict verdict, const struct stat *status);

#endif
