/* SPDX-License-Identifier: MIT */
/* methods/file/process_alive.h - is the holder that a record names still alive?
 *
 * DEAD needs proof.  Where there is proof of neither life nor death the verdict is UNKNOWN, and the
 * lock is left alone; with --stale, only until it is so old. */
#ifndef SEMLOCK_METHODS_FILE_PROCESS_ALIVE_H
#define SEMLOCK_METHODS_FILE_PROCESS_ALIVE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "methods/file/owner_record.h"

enum verdict { ALIVE, DEAD, UNKNOWN };

/* What the kernel says of a recorded PID. */
enum process_state {
	PROCESS_GONE,   /* there is none */
	PROCESS_HIDDEN, /* there is one, and no more can be read (hidepid, no /proc) */
	PROCESS_SEEN    /* there is one, in STATE, started at START */
};

struct life {
	enum process_state process;
	char state;
	uint64_t start;
};

/* All that the verdict rests on, beside the record. */
struct facts {
	bool local;       /* the lock's file system is this kernel's alone */
	bool young;       /* it may be a moment old, and still being written */
	bool before_boot; /* a regular file last written before this boot */
	const struct host_id *host_id;
	struct life holder;
	struct life semlock; /* which releases the lock when the holder has ended */
};

/* The verdict, by nothing but the arguments: rows 2 to 12 of tests/models/README. */
enum verdict record_verdict(const struct record *record, const struct facts *facts);

/* Fill FACTS->holder and FACTS->semlock with what the kernel says.  OURS: the PID of our own
 * command, which waits at its start barrier and is no holder; 0: none. */
void record_verdict_ask(const struct record *record, struct facts *facts, pid_t ours);

/* Whose end a waiter awaits while RECORD's holder is ALIVE: the holder, or its semlock once the holder has ended. */
pid_t record_awaited(const struct record *record);

/* Does root, PID's real user or that of PID's parent (of sudo, say) own OBJECT?  If not, OBJECT lets
 * no process signal PID, nor run a command under its lock: any user can name any process.  (A
 * daemon that switches the effective user for a moment does not change whose it is.)  True as well once
 * PID has ended. */
bool owner_trusted(const struct stat *object, pid_t pid);

/* The same, for what is written in OBJECT: no other user may write to it either. */
bool record_trusted(const struct stat *object, pid_t pid);

#endif
