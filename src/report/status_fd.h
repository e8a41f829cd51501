/* report/status_fd.h - --status-fd: what happens, for programs, one line per event.
 *
 *	acquired            the lock is ours
 *	busy                it is not to be had, and we were not to wait
 *	timeout             ... or not in time
 *	stopped PID         --replace or --toggle has signalled process PID; one line for each
 *	nested              an ancestor holds the lock, and the command runs under it (--nested)
 *	not-run ERRNO       the command could not be started, ENOENT for instance
 *	run-timeout         --run-timeout has ended the command; how it ended follows
 *	exit N              the command has ended with status N
 *	signal N            signal N has ended the command
 *	lost                the lock was lost while the command ran; how it ended stands before
 *	failed N            semlock itself ends with status N, for a reason that is on standard error
 *
 * There may be more kinds of line one day; what is here stays as it is. */
#ifndef SEMLOCK_REPORT_STATUS_FD_H
#define SEMLOCK_REPORT_STATUS_FD_H

#include "report/error.h"

/* Write events on FD, and keep FD from the command unless it is one of 0 to 2.  Until this is called there are none.
 * Returns 0, or -1 when FD is not open. */
int events_to(int fd);

/* The descriptor that events are written on, or -1. */
int events_descriptor(void);

/* Write one line, newline added, in one write.  A reader that has gone is no trouble. */
void status_fd_event(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The symbol of an errno that execve(2) returns: "ENOENT"; a number where it has none here. */
const char *status_fd_errno(int errnum);

#endif
