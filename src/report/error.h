/* SPDX-License-Identifier: MIT */
/* report/error.h - what failed and why, and messages on standard error. */
#ifndef SEMLOCK_REPORT_ERROR_H
#define SEMLOCK_REPORT_ERROR_H

#include <errno.h>
#include <stdnoreturn.h>
#include <unistd.h>

#include "report/exitcode.h"

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* A function that runs at failure only: kept apart from those that every start calls, so that these share few pages. */
#define COLD __attribute__((cold, noinline))

/* The kind of an error is the exit status that semlock ends with; exit_status_of() says it. */
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
	ERROR_AWAY = 256 /* unavailable, but another try may help: a server that is silent, or without a leader */
};

/* The exit status for an error of KIND; a failure that no error describes is a bug. */
static inline int exit_status_of(enum kind kind)
{
	return kind == ERROR_NONE ? EXIT_INTERNAL : kind == ERROR_AWAY ? EXIT_UNAVAILABLE : (int)kind;
}

/* Filled at the failing call, where the reason is known; printed by the module that chooses the exit
 * status. */
struct error {
	enum kind kind;
	int errnum;     /* errno of the system call; 0: no call failed */
	char text[400]; /* "cannot open: Permission denied"; the lock's name is added when it is printed */
};

/* Fill ERROR with KIND, errno and the formatted text; unless errno is 0, ": " and strerror(3) follow.
 * errno stays.  Returns -1, so that a caller can "return error_set(...)". */
#define error_set(error, kind, ...) error_fill((error), (kind), errno, __VA_ARGS__)

/* The same where no system call has failed: the text alone, and errno is set to 0. */
#define error_plain(error, kind, ...) error_fill((error), (kind), 0, __VA_ARGS__)

COLD int error_fill(struct error *error, enum kind kind, int errnum, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Start every message with NAME, which must last: "semlock", or "flock". */
void report_as(const char *name);

/* Print "PROGRAM: ..." as one line on descriptor FD, in one write, so that the lines of several processes do not
 * mix.  Control characters are replaced.  errno stays, and a failure is ignored. */
COLD void tell(int fd, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The same, on standard error. */
#define complain(...) tell(STDERR_FILENO, __VA_ARGS__)

/* Print a line on standard output, buffered; control characters are replaced. */
void print_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* complain(), then exit(3) with STATUS.  For the command line (cli/), --who (owners/) alone. */
COLD noreturn void die(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Write out standard output, then exit(3): with STATUS, or with EXIT_SYSTEM and a message if that fails. */
noreturn void end_output(int status);

#endif
