/* report/exitcode.h - every status that semlock itself can end with.
 *
 * The list in semlock(1), EXIT STATUS, is checked against this one by a test.
 * A command's own status is passed through untouched; --verbose, or standard
 * error, tells one from the other. */
#ifndef SEMLOCK_REPORT_EXITCODE_H
#define SEMLOCK_REPORT_EXITCODE_H

#include "report/error.h"

enum {
	EXIT_BUSY = 1,        /* the lock is somebody else's, or the time ran out; -E changes it */
	EXIT_USAGE = 64,      /* the command line makes no sense, or the method cannot do that */
	EXIT_NOTLOCKABLE = 65, /* a descriptor, or a kind of file, that takes no lock */
	EXIT_NOTOPEN = 66,    /* the lock file cannot be opened */
	EXIT_UNAVAILABLE = 69, /* not built in; under the name flock: the command cannot start */
	EXIT_INTERNAL = 70,   /* a fault of semlock's own */
	EXIT_SYSTEM = 71,     /* no memory, processes, descriptors or locks left */
	EXIT_CANTCREATE = 73, /* the lock file cannot be made: full, or read-only */
	EXIT_LOST = 76,       /* somebody took the lock away while the command ran */
	EXIT_NOTPERMITTED = 77, /* the holder is somebody else's, and not for us to stop */
	EXIT_RUNTIMEOUT = 124, /* --run-timeout has ended the command */
	EXIT_NOTRUN = 126,    /* the command is there and cannot be run */
	EXIT_NOTFOUND = 127   /* there is no such command */
};

/* The status for a kind of trouble. */
int exit_status_of(enum kind kind);

#endif
