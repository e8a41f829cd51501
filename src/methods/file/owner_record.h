/* SPDX-License-Identifier: MIT */
/* methods/file/owner_record.h - the record: what a lock made of files says of its holder; and this
 * system, as far as a record can name it.
 *
 * It is written in full (excl, mkdir, rename), in one line (a symlink's target), or as the bare PID
 * (link, for mail programs).  From other programs a PID in decimal is accepted: alone, with words
 * after it in its line, or with a host in the second line.  Anything else is RECORD_JUNK, and
 * proves nothing. */
#ifndef SEMLOCK_METHODS_FILE_OWNER_RECORD_H
#define SEMLOCK_METHODS_FILE_OWNER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { BOOT_SIZE = 40, HOST_SIZE = 65 };

/* "-" stands for a name that cannot be found out. */
struct host_id {
	char boot[BOOT_SIZE];
	char host[HOST_SIZE];
	int nameless; /* 0, or errno if uname(2), which fills HOST, failed */
	char machine[HOST_SIZE];
	uint64_t pidns; /* 0: unknown */
	pid_t pid_max;  /* 0: unknown */
	int64_t booted; /* seconds since 1970, by today's clock */
};

/* Looked up once; any thread may ask. */
const struct host_id *host_id(void);

enum {
	RECORD_LONGEST = 512, /* the most that we write, with its '\0' */
	RECORD_LIMIT = 4096,  /* the most that we read; longer ones are RECORD_JUNK */
	BOOT_SHORT =
	    13 /* characters of the boot in a one-line record: its 12 digits tell boots apart */
};

enum record_kind {
	RECORD_EMPTY,
	RECORD_FULL, /* a semlock's, complete */
	/* a PID, and perhaps a host, but no start time: the PID may have been reused */
	RECORD_PID,
	RECORD_JUNK,
	RECORD_ABSENT /* a directory of other files that names no process: no lock */
};

struct record {
	enum record_kind kind;
	pid_t pid;      /* 0: the writer did not say */
	uint64_t start; /* ticks after boot; 0: not said */
	uint64_t pidns; /* 0: not said */
	int64_t since;  /* seconds since 1970; 0: not said */
	uid_t uid;      /* -1: not said */
	bool flocked;   /* the object is under flock(2) as long as the holder lives */
	pid_t semlock;  /* PID's parent, which releases the lock when PID has ended; 0: not said */
	char boot[BOOT_SIZE]; /* "": not said; likewise the next two */
	char host[HOST_SIZE];
	char machine[HOST_SIZE];
};

/* Fill RECORD from the LENGTH bytes at TEXT.  Never fails: see RECORD_JUNK. */
void record_read(struct record *record, const char *text, size_t length);

/* Was RECORD written during BOOT?  A one-line record has only the beginning of its boot: then only
 * that is compared. */
bool record_of_boot(const struct record *record, const char *boot);

/* Write RECORD into TEXT: the first as a file's contents, with the name of METHOD (NULL: only the
 * PID is written); the second as one line.  Both return the length in bytes. */
size_t record_write(const struct record *record, const char *method, char text[RECORD_LONGEST]);
size_t record_write_line(const struct record *record, char text[RECORD_LONGEST]);

/* Fill RECORD for process PID, a child of ours that has not been waited for. */
void record_describe(struct record *record, pid_t pid);

/* ---- is the holder that a record names still alive?
 *
 * DEAD needs proof.  Where there is proof of neither life nor death the verdict is UNKNOWN, and the
 * lock is left alone; with --stale, only until it is that old. ---- */

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
	bool young;       /* it may be a moment old, and still being written */
	bool before_boot; /* a regular file last written before this boot */
	const struct host_id *host_id;
	struct life holder;
	struct life semlock; /* which releases the lock when the holder has ended */
};

/* Return the verdict, which depends only on the arguments: rows 2 to 12 of tests/models/README. */
enum verdict record_verdict(const struct record *record, const struct facts *facts);

/* Fill FACTS->holder and FACTS->semlock with what the kernel says.  OURS: the PID of our own
 * command, which waits at its start barrier and is no holder; 0: none. */
void record_verdict_ask(const struct record *record, struct facts *facts, pid_t ours);

/* The process to wait for while the verdict on RECORD is ALIVE: the holder, or, once the holder has
 * ended, its semlock. */
pid_t record_awaited(const struct record *record);

#endif
