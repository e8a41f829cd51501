/* methods/file/owner_record.h - the record: what a lock made of files says of its holder.
 *
 * Written in full (excl, mkdir, rename), in one line (a symlink's target), or as the bare
 * PID (link, for mail programs).  Read in all the formats that other programs leave
 * behind; what makes no sense is JUNK, and proves nothing. */
#ifndef SEMLOCK_METHODS_FILE_OWNER_RECORD_H
#define SEMLOCK_METHODS_FILE_OWNER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "methods/file/host_id.h"

enum {
	RECORD_LONGEST = 512, /* what we write, with its '\0' */
	RECORD_LIMIT = 4096,  /* what we read of anybody's; longer ones are JUNK */
	BOOT_SHORT = 13 /* of its characters in a line: 12 digits tell one boot from another as well */
};

enum record_kind {
	RECORD_EMPTY,
	RECORD_FULL, /* one of ours, with everything in it */
	RECORD_PID,  /* a PID, and perhaps a host, but not which incarnation of the PID */
	RECORD_JUNK,
	RECORD_ABSENT /* a directory of other files, in which no process is named: no lock */
};

struct record {
	enum record_kind kind;
	pid_t pid;      /* 0: the writer did not say */
	uint64_t start; /* ticks after boot; 0: not said */
	uint64_t pidns; /* 0: not said */
	int64_t since;  /* seconds since 1970; 0: not said */
	uid_t uid;
	bool flocked;   /* its holder and nobody else keeps the object under flock(2) */
	pid_t semlock;  /* waits for PID to end, and lets go then; 0: not said.  A line says it */
	char boot[BOOT_SIZE];    /* "": not said; so the following */
	char host[HOST_SIZE];
	char machine[HOST_SIZE];
};

/* Understand LENGTH bytes at TEXT.  Never fails: see RECORD_JUNK. */
void record_read(struct record *record, const char *text, size_t length);

/* Is it of BOOT, as far as it says? */
bool record_of_boot(const struct record *record, const char *boot);

/* Write RECORD, for METHOD, as a file's contents, or as one line.  Returns the length. */
size_t record_write(const struct record *record, const char *method, char text[RECORD_LONGEST]);
size_t record_write_line(const struct record *record, char text[RECORD_LONGEST]);

/* Fill RECORD with all there is to say of process PID, a child of ours that is still there. */
void record_describe(struct record *record, pid_t pid);

#endif
