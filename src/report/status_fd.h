/* SPDX-License-Identifier: MIT */
/* report/status_fd.h - --status-fd: events for programs, one line each.
 *
 *	acquired waited=S   semlock holds the lock, after S seconds
 *	busy                the lock is held, and semlock does not wait for it (-n, for instance)
 *	timeout             the lock was still held when the wait's time was up
 *	superseded          a later waiter with --supersede has come
 *	stopped PID         --replace or --toggle has signalled process PID; one line for each
 *	nested              the lock is inherited, and the command runs under it (--nested)
 *	not-run ERRNO       the command could not be started, ENOENT for instance
 *	run-timeout         --run-timeout has signalled the command; exit or signal follows
 *	exit N held=S       the command has ended with status N; the lock was held for S seconds
 *	signal N held=S     signal N has ended the command
 *	lost                the lock was lost while the command ran; follows an exit or signal line
 *	failed N            semlock itself ends with status N; the reason is on standard error
 *
 * Later versions may add kinds of line, and words at the end of these; the rest stays as it is. */
#ifndef SEMLOCK_REPORT_STATUS_FD_H
#define SEMLOCK_REPORT_STATUS_FD_H

#include "report/error.h"

/* The descriptor that events are written on; -1: none. */
extern int status_fd;

/* Write events on FD from now on; the command does not inherit FD unless it is one of 0 to 2.
 * Returns 0, or -1 with errno set when FD is not open. */
int status_fd_use(int fd);

/* Write one line, and a newline, in one write(2), if there is a status_fd.  A failure is ignored; a
 * closed pipe raises no SIGPIPE. */
#define status_fd_event(...) (status_fd >= 0 ? status_fd_write(__VA_ARGS__) : (void)0)
void status_fd_write(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A printf(3) format, and its arguments for NS nanoseconds: seconds, with three digits after the
 * point. */
#define STATUS_FD_SECONDS "%lld.%03lld"
#define STATUS_FD_TIME(ns) (long long)((ns) / 1000000000), (long long)((ns) % 1000000000 / 1000000)

/* Returns the symbol of ERRNUM, an errno of execve(2), such as "ENOENT"; or, if the symbol is
 * unknown, the number, in a static buffer. */
const char *status_fd_errno(int errnum);

#endif
