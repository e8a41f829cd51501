/* SPDX-License-Identifier: MIT */
/* methods/file/owner_record.h - the record: what a lock made of files says of its holder; and this
 * system, as far as a record can name it.
 *
 * semlock writes it in full (excl, mkdir, rename), in one line (as a symlink's target), or as the
 * bare PID (link, for mail programs).  In locks of other programs, semlock accepts a decimal PID
 * (git: after "pid "): alone, followed by words in the same line, or with a host in the second
 * line.  Other contents are RECORD_JUNK, and prove nothing. */
#ifndef SEMLOCK_METHODS_FILE_OWNER_RECORD_H
#define SEMLOCK_METHODS_FILE_OWNER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { BOOT_SIZE = 40, HOST_SIZE = 65 };

/* What identifies this system.  "-" stands for a name that cannot be found out. */
struct host_id {
	char boot[BOOT_SIZE];
	char host[HOST_SIZE];
	int nameless; /* 0, or errno if uname(2), which fills HOST, failed */
	char machine[HOST_SIZE];
	uint64_t pidns; /* inode number of our PID namespace; 0: unknown */
	pid_t pid_max;  /* 0: unknown */
	int64_t booted; /* when it was booted: seconds since 1970, by the clock as it is now */
};

/* Return this system's identity.  It is looked up in the first call.  Any thread may call this. */
const struct host_id *host_id(void);

enum {
	RECORD_LONGEST = 512, /* bytes that we write at most, with the '\0' */
	RECORD_LIMIT = 4096,  /* bytes that we read at most; a longer record is RECORD_JUNK */
	BOOT_SHORT =
	    13 /* bytes of the boot ID that a one-line record has: 12 hex digits, a hyphen */
};

enum record_kind {
	RECORD_EMPTY,
	RECORD_FULL, /* written by semlock, and complete */
	/* a PID, and perhaps a host, but no start time: the PID may have been reused */
	RECORD_PID,
	RECORD_JUNK,
	RECORD_ABSENT /* a directory of other files that names no process: no lock */
};

struct record {
	enum record_kind kind;
	pid_t pid;      /* 0: the writer did not say */
	uint64_t start; /* when PID started: ticks after boot; 0: not said */
	uint64_t pidns; /* PID's namespace; 0: not said */
	int64_t since;  /* when this was written: seconds since 1970; 0: not said */
	uid_t uid;      /* of semlock; -1: not said.  Only RECORD_FULL has it */
	bool flocked;   /* the object is under flock(2) as long as the holder lives */
	pid_t semlock;  /* PID's parent, which releases the lock when PID has ended; 0: not said */
	char boot[BOOT_SIZE]; /* "": not said; likewise the next two */
	char host[HOST_SIZE];
	char machine[HOST_SIZE];
	bool earlier; /* perhaps an earlier holder's, so that its death proves nothing (rename) */
};

/* Fill RECORD from the LENGTH bytes at TEXT.  Never fails: see RECORD_JUNK. */
void record_read(struct record *record, const char *text, size_t length);

/* Was RECORD written during the boot whose ID is BOOT?  If RECORD has only the beginning of its
 * boot ID, as a one-line record does, only that is compared. */
bool record_of_boot(const struct record *record, const char *boot);

/* Both write RECORD into TEXT, and return the length in bytes.  The first writes the contents of a
 * file: the full record, with the name of METHOD, or only the PID if METHOD is NULL.  The second
 * writes a one-line record. */
size_t record_write(const struct record *record, const char *method, char text[RECORD_LONGEST]);
size_t record_write_line(const struct record *record, char text[RECORD_LONGEST]);

/* Fill RECORD for process PID, a child of ours that has not been waited for. */
void record_describe(struct record *record, pid_t pid);

/* ---- is the holder that a record names still alive?
 *
 * DEAD needs proof.  If there is proof of neither life nor death, the verdict is UNKNOWN, and
 * waiters leave the lock alone; with --stale, only until the lock is that old. ---- */

enum verdict { ALIVE, DEAD, UNKNOWN };

/* What the kernel says of a recorded PID. */
enum process_state {
	PROCESS_GONE,   /* no such process */
	PROCESS_HIDDEN, /* it exists, but nothing more can be read (hidepid, no /proc) */
	PROCESS_SEEN    /* it exists, in STATE, and started at START */
};

struct life {
	enum process_state process;
	char state;
	uint64_t start;
};

/* All that the verdict rests on, beside the record. */
struct facts {
	bool local;       /* the lock's file system is this kernel's alone */
	bool young;       /* an empty file, so new that its creator may be about to write it */
	bool before_boot; /* an empty file, last written before this boot */
	const struct host_id *host_id;
	struct life holder;
	struct life semlock; /* which releases the lock when the holder has ended */
};

/* Return the verdict, which depends only on the arguments: rows 2 to 12 of tests/models/README. */
enum verdict record_verdict(const struct record *record, const struct facts *facts);

/* Fill FACTS->holder and FACTS->semlock with what the kernel says.  OURS is the PID of our own
 * command, which waits at its start barrier (0: none).  A record with that PID names an earlier
 * process, which has ended. */
void record_verdict_ask(const struct record *record, struct facts *facts, pid_t ours);

/* The process to wait for while the verdict on RECORD is ALIVE: the holder, or, once the holder has
 * ended, its semlock. */
pid_t record_awaited(const struct record *record);

#endif
