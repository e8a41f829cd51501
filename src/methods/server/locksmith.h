/* methods/server/locksmith.h - semlock-locksmith(7), the helper that holds a lock on a server for us: a program for
 * each scheme of URLs, started with a pipe each way, and spoken to in lines.
 *
 *	our end           the pipe                 semlock-locksmith-SCHEME
 *	in  ------------> "CHILD pid", then end -> standard input: its end lets the lock go
 *	out <------------ WAIT, OK, HELD, LOST <-- standard output: its end means that it is dead
 *
 * The command inherits IN, so that the lock is not let go under a command that still runs. */
#ifndef SEMLOCK_METHODS_SERVER_LOCKSMITH_H
#define SEMLOCK_METHODS_SERVER_LOCKSMITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/deadline.h"
#include "report/error.h"

enum {
	LOCKSMITH_LINE = 1024, /* longer than any line of its */
	LOCKSMITH_PROTOCOL = 1
};

/* The program of a scheme is called so, and the scheme. */
#define LOCKSMITH_PREFIX "semlock-locksmith-"

/* What an engine can do, by its first line. */
enum { OFFERS_SHARED = 1, OFFERS_SLOTS = 2, OFFERS_ORDER = 4, OFFERS_TOKEN = 8 };

struct locksmith {
	pid_t pid;
	int in;  /* the write end of its input; -1: closed */
	int monitor; /* the read end of the same pipe, to see whether others have the write end open */
	int out;
	char buffer[LOCKSMITH_LINE];
	size_t used;      /* bytes in BUFFER ... */
	size_t taken;     /* ... of which the first so many were the line before */
	const char *scheme, *url;
	unsigned offers;  /* OFFERS_... */
	bool silent;      /* it has not answered in time: it is not waited for */
	bool held;        /* it has said OK */
	int64_t lease;    /* ns */
	int64_t deadline; /* on CLOCK_BOOTTIME: until then the lock is ours, for sure */
};

/* Where the helpers are. */
const char *locksmith_directory(void);

/* Start the helper for SCHEME with ARGV, which ends in the URL ([0] is filled in).  It gets our standard error and none of
 * our other descriptors, and a session of its own.  Returns 0, or -1 with ERROR filled. */
int locksmith_start(struct locksmith *smith, const char *scheme, const char **argv, struct error *error);

/* Read its first line, waiting for it until UNTIL: the version, and what it offers.  Returns 0, or
 * -1 with ERROR filled. */
int locksmith_greet(struct locksmith *smith, const struct deadline *until, struct error *error);

/* Fill ERROR in about a line that did not come: GOT is LINE_LATE or LINE_END.  Returns -1. */
int locksmith_silent(const struct locksmith *smith, int got, struct error *error);

/* Fill ERROR in about LINE, which is none of the protocol's.  Returns -1. */
int locksmith_unknown(const struct locksmith *smith, const char *line, struct error *error);

enum { LINE_END = -1, LINE_LATE = 0, LINE_READ = 1 };

/* Its next line but notes, which the user gets, waiting for it until UNTIL: LINE_READ with *LINE set, good until the next
 * call; LINE_LATE; LINE_END: it has closed its output. */
int locksmith_line(struct locksmith *smith, const struct deadline *until, const char **line);

/* Is WORD the first one of LINE?  Returns what stands behind it, or NULL. */
const char *locksmith_says(const char *line, const char *word);

/* The number of the field KEY ("deadline=") in LINE into *NUMBER; returns whether it is there. */
bool locksmith_number(const char *line, const char *key, long long *number);

/* Note the lease and the deadline that LINE (OK, HELD) tells. */
void locksmith_note(struct locksmith *smith, const char *line);

/* Say LINE, with its newline, to it. */
void locksmith_tell(struct locksmith *smith, const char *line);

/* Close our end of its input.  Returns whether nobody else has it open either: then it lets go. */
bool locksmith_let_go(struct locksmith *smith);

/* When our lease ends, as a deadline to wait for. */
struct deadline locksmith_lease_end(const struct locksmith *smith);

/* Close what is open; with ENDED, wait for it.  Returns its exit status then; -1: a signal has ended
 * it, or it was not waited for. */
int locksmith_forget(struct locksmith *smith, bool ended);

#endif
