/* SPDX-License-Identifier: MIT */
/* methods/server/locksmith.h - semlock-locksmith(7), the helper that holds a lock on a server for
 * us.  There is a program for each URL scheme.  semlock starts it with two pipes; both sides write
 * lines of text.
 *
 *	semlock's end     the pipe                 semlock-locksmith-SCHEME
 *	in  ------------> START, then closed ----> standard input: end of file releases the lock
 *	out <------------ WAIT, OK, HELD, LOST <-- standard output: closed when the helper ends
 *
 * The command inherits IN, and the subreaper (run/subreaper.h) keeps it open, too.  So as long as
 * the command runs, the helper does not read end of file, and keeps the lock. */
#ifndef SEMLOCK_METHODS_SERVER_LOCKSMITH_H
#define SEMLOCK_METHODS_SERVER_LOCKSMITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "lock/lock.h"
#include "protocol/locksmith_words.h"
#include "report/error.h"
#include "report/text.h"
#include "sys/deadline.h"

/* Is NAME, a process's name, that of a helper?  The kernel cuts such names after 15 bytes. */
static inline bool name_is_helper(const char *name)
{
	return strncmp(name, LOCKSMITH_PREFIX, 15) == 0;
}

/* What a helper offers in its first line. */
enum {
	OFFERS_SHARED = 1,
	OFFERS_SLOTS = 2,
	OFFERS_ORDER = 4,
	OFFERS_TOKEN = 8,
	OFFERS_QUEUE_MAX = 16
};

struct locksmith {
	pid_t pid;
	int in;      /* the write end of the helper's input; -1: closed */
	int monitor; /* the read end of the same pipe: POLLHUP shows that no process has IN open */
	int out;
	char buffer[LOCKSMITH_LINE];
	int unheard;  /* errno if poll(2) on OUT failed; else 0 */
	size_t used;  /* bytes in BUFFER ... */
	size_t taken; /* ... of which the first TAKEN are the previous line */
	const char *scheme, *url;
	unsigned offers; /* OFFERS_... */
	/* when the helper must have answered and, if the answer is not OK, must have ended */
	struct deadline answer_by;
	bool waited;      /* WAIT was read */
	bool held;        /* OK was read */
	int64_t lease;    /* ns */
	int64_t deadline; /* ns on CLOCK_BOOTTIME: until then no other process can get the lock */
};

/* Return the N-th directory, from 0, in which helpers are searched for; NULL past the last.
 * SEMLOCK_LOCKSMITH_DIR is the first, if it is set and this process has no more rights than its
 * caller.  libexec is the last. */
const char *locksmith_directory(unsigned n);

/* Write the schemes of the installed helpers into TEXT (SIZE bytes), each after a blank.  If no
 * helper is installed, write a blank and "(none)".  Pass each scheme to similar_try() with
 * SIMILAR. */
void locksmith_schemes(char *text, size_t size, struct similar *similar);

/* Mark PIPE as a helper's input, by giving it a size that other pipes seldom have.  This saves
 * time: server_inherited() searches all processes for a helper only if this process has inherited a
 * marked pipe. */
void locksmith_mark(int pipe);

/* May PIPE be a helper's input?  Also true if the kernel does not report the size. */
bool locksmith_marked(int pipe);

/* Start the helper for SCHEME with ARGV, whose last element is the URL and whose first is filled in
 * here.  The helper inherits standard error and no other descriptor, and gets a session of its own.
 * Returns 0, or -1 with ERROR filled.  If the program is missing, returns 0; the first line is
 * then ERR. */
int locksmith_start(struct locksmith *helper, const char *scheme, const char **argv,
    struct error *error);

/* Wait until UNTIL for the helper's first line: its version and what it offers.  Returns 0, or -1
 * with ERROR filled. */
int locksmith_greet(struct locksmith *helper, const struct deadline *until, struct error *error);

/* Fill ERROR for a missing line: GOT is LINE_LATE or LINE_END.  Returns -1. */
int locksmith_silent(const struct locksmith *helper, int got, struct error *error);

/* Fill ERROR for LINE, which is unknown to the protocol.  Returns -1. */
int locksmith_unknown(const struct locksmith *helper, const char *line, struct error *error);

enum { LINE_END = -1, LINE_LATE = 0, LINE_READ = 1 };

/* Wait until UNTIL for the next line, and print NOTE lines meanwhile.  Returns LINE_READ with *LINE
 * set, which is valid until the next call; LINE_LATE; or LINE_END: the helper has closed its
 * output, or poll(2) has failed. */
int locksmith_line(struct locksmith *helper, const struct deadline *until, const char **line);

/* Fill ERROR from TEXT, the status and message of an ERR line.  Returns -1. */
int locksmith_refused(const char *text, struct error *error);

/* Returns the rest of LINE after KEY ("host="), which begins with that field's value; NULL if LINE
 * does not have the field. */
const char *locksmith_field(const char *line, const char *key);

/* Read the field KEY ("deadline=") of LINE into *NUMBER.  Returns false if LINE has no such
 * field. */
bool locksmith_number(const char *line, const char *key, long long *number);

/* Store the lease and the deadline of LINE (OK, HELD) in HELPER. */
void locksmith_note(struct locksmith *helper, const char *line);

/* Send START: the helper renews the lock from now on, and --who names COMMAND. */
void locksmith_begin(struct locksmith *helper, pid_t command);

/* Close IN.  Returns true if no other process has it open: then the helper releases the lock. */
bool locksmith_let_go(struct locksmith *helper);

/* Close all descriptors; with ENDED, wait until the helper has ended.  Returns the helper's exit
 * status; -1: a signal has ended the helper, or it was not waited for. */
int locksmith_forget(struct locksmith *helper, bool ended);

#endif
