/* SPDX-License-Identifier: MIT */
/* report/exitcode.h - every exit status of semlock's own.
 *
 * A test compares EXIT STATUS in semlock(1) with this list.  The command's status is passed through
 * unchanged, and may be the same number: standard error and --status-fd tell the two apart. */
#ifndef SEMLOCK_REPORT_EXITCODE_H
#define SEMLOCK_REPORT_EXITCODE_H

enum {
	EXIT_BUSY = 1,        /* another process holds the lock, or the time is up; -E changes this status */
	EXIT_USAGE = 64,      /* the command line is wrong, or the method cannot honour an option */
	EXIT_NOTLOCKABLE = 65, /* this descriptor or kind of file cannot be locked */
	EXIT_NOTOPEN = 66,    /* the lock file cannot be opened */
	EXIT_UNAVAILABLE = 69, /* not offered by this system or build; as flock: the command cannot start */
	EXIT_INTERNAL = 70,   /* a bug in semlock */
	EXIT_SYSTEM = 71,     /* out of memory, processes, descriptors or locks */
	EXIT_CANTCREATE = 73, /* the lock file cannot be created: file system full or read-only, say */
	EXIT_LOST = 76,       /* the lock was lost while the command ran */
	EXIT_NOTPERMITTED = 77, /* the holder belongs to another user, and may not be signalled */
	EXIT_RUNTIMEOUT = 124, /* --run-timeout has ended the command */
	EXIT_NOTRUN = 126,    /* the command exists and cannot be executed */
	EXIT_NOTFOUND = 127   /* the command does not exist */
};

#endif
