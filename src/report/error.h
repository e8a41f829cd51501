/* SPDX-License-Identifier: MIT */
/* report/error.h - what failed and why, the exit statuses, and messages on standard error. */
#ifndef SEMLOCK_REPORT_ERROR_H
#define SEMLOCK_REPORT_ERROR_H

#include <errno.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <unistd.h>

#include "report/compiler.h"

/* Every exit status of semlock's own.  The command's status is passed through unchanged, and may be
 * the same number: standard error and --status-fd tell the two apart. */
enum {
	/* another process holds the lock, or the time is up; -E changes this status */
	EXIT_BUSY = 1,
	EXIT_USAGE = 64, /* the command line is wrong, or the method cannot honour an option */
	EXIT_NOTLOCKABLE = 65, /* this descriptor or this kind of file cannot be locked */
	EXIT_NOTOPEN = 66,     /* the lock file cannot be opened */
	/* a server, a program or a feature is not available; invoked as flock: the command cannot
	 * start */
	EXIT_UNAVAILABLE = 69,
	EXIT_INTERNAL = 70, /* a bug in semlock */
	EXIT_SYSTEM = 71,   /* out of memory, processes, descriptors or locks */
	/* the lock file cannot be created: file system full or read-only, say */
	EXIT_CANTCREATE = 73,
	EXIT_LOST = 76,         /* the lock was lost while the command ran */
	EXIT_NOTPERMITTED = 77, /* the holder is another user's, or the server refuses us */
	EXIT_RUNTIMEOUT = 124,  /* --run-timeout has ended the command */
	EXIT_NOTRUN = 126,      /* the command exists and cannot be executed */
	EXIT_NOTFOUND = 127     /* the command does not exist */
};

/* The kind of an error is the exit status that semlock ends with, except for the kinds that
 * exit_status_of() translates. */
enum kind {
	ERROR_NONE = 0,
	ERROR_USAGE = EXIT_USAGE, /* also: this method or this file cannot do what was asked for */
	ERROR_LOCKABLE = EXIT_NOTLOCKABLE,
	ERROR_OPEN = EXIT_NOTOPEN,
	ERROR_CREATE = EXIT_CANTCREATE,
	ERROR_SYSTEM = EXIT_SYSTEM,
	ERROR_UNAVAILABLE = EXIT_UNAVAILABLE,
	ERROR_LOST = EXIT_LOST,
	ERROR_PERMISSION = EXIT_NOTPERMITTED,
	ERROR_AWAY = 256, /* unavailable, but another try may help: a server that is silent, or
	                     without a leader */
	/* as ERROR_AWAY, but the server was reached: the server, or this machine, is busy */
	ERROR_SLOW
};

/* Returns the exit status for an error of KIND.  ERROR_NONE gives EXIT_INTERNAL: a failure that no
 * error describes is a bug. */
int exit_status_of(enum kind kind);

/* The function in which a call fails fills in an error, because it knows the reason.  The module
 * that chooses the exit status prints the error. */
struct error {
	enum kind kind;
	int errnum; /* errno of the system call; 0: no call failed */
	/* such as "cannot open: Permission denied"; the lock's name is added when the error is
	 * printed */
	char text[400];
};

/* Fill ERROR with KIND, errno and the formatted text; unless errno is 0, ": " and strerror(3)
 * follow.  errno keeps its value.  Returns -1, so that a caller can "return error_set(...)". */
#define error_set(error, kind, ...) error_fill((error), (kind), errno, __VA_ARGS__)

/* Like error_set(), but no system call has failed: fill in the text alone, and set errno to 0. */
#define error_plain(error, kind, ...) error_fill((error), (kind), 0, __VA_ARGS__)

int error_fill(struct error *error, enum kind kind, int errnum, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* After a failed fork(2), fill ERROR and mention the limit that may be the cause.  Returns -1. */
int error_no_process(struct error *error);

/* Begin every message with NAME, "semlock" or "flock", from now on.  NAME is not copied, and must
 * last. */
void report_as(const char *name);

/* write(2) the SIZE bytes at BYTES to FD, which may be a pipe or a socket; repeat the call while a
 * signal interrupts it.  If nobody reads from FD, fails with EPIPE, and raises no SIGPIPE.  Safe in
 * any thread, and in a signal handler.  Returns what write(2) returns, with errno set. */
ssize_t write_without_sigpipe(int fd, const void *bytes, size_t size);

/* Print "PROGRAM: ..." as one line on descriptor FD, in one write, so that the lines of several
 * processes do not mix.  Control characters are replaced.  errno keeps its value, and a failure is
 * ignored. */
void tell(int fd, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The same, on standard error. */
#define complain(...) tell(STDERR_FILENO, __VA_ARGS__)

/* Print a line on standard output, buffered; control characters are replaced. */
void print_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The first notes that standard error is a pipe whose data another process writes to a
 * terminal.  The second returns whether standard error reaches a terminal, directly or through such
 * a pipe. */
void report_to_terminal(void);
bool report_is_on_terminal(void);

/* complain(), then exit(3) with STATUS.  For cli/ and run/who alone. */
noreturn void die(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Write out standard output, then exit(3): with STATUS, or with EXIT_SYSTEM and a message if that
 * fails. */
noreturn void end_output(int status);

#endif
