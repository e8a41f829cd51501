/* report/error.h - words for people, on standard error, and the reasons behind them. */
#ifndef SEMLOCK_REPORT_ERROR_H
#define SEMLOCK_REPORT_ERROR_H

#include <stdnoreturn.h>

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* What kind of thing went wrong.  main() turns it into an exit status. */
enum kind {
	ERROR_NONE,
	ERROR_USAGE,    /* asked for what this method or this file cannot do */
	ERROR_LOCKABLE, /* this descriptor or kind of file takes no lock */
	ERROR_OPEN,     /* the lock file cannot be opened */
	ERROR_CREATE,   /* ... or made */
	ERROR_SYSTEM,   /* the system is out of something */
	ERROR_UNAVAILABLE, /* this system does not offer that */
	ERROR_LOST,      /* it was ours, and is not any more */
	ERROR_PERMISSION /* that is somebody else's, and not for us to touch */
};

/* Why something failed: filled in at the failing call, where the words are
 * known, and carried up to whoever chooses the exit status. */
struct error {
	enum kind kind;
	int errnum;     /* 0 when no system call is to blame */
	char text[320]; /* "cannot open: Permission denied"; the lock is named by whoever prints it */
};

/* Keep errno, the kind of trouble and the words in ERROR.  The words get ": " and
 * the system's reason behind them when errno is not 0.  Returns -1, so that a
 * caller can "return error_set(...)". */
int error_set(struct error *error, enum kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same without a system call to blame: errno is not looked at. */
int error_say(struct error *error, enum kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The name that every message starts with: "semlock", or "flock". */
void report_as(const char *name);

/* Print "PROGRAM: ..." as one line on standard error, in one write, control
 * characters made harmless.  Never fails: there is nobody left to tell. */
void complain(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The same, on descriptor FD. */
void tell(int fd, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Print a line on standard output, buffered, made safe in the same way. */
void print_line(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Complain, then exit with STATUS. */
noreturn void die(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
