/* SPDX-License-Identifier: MIT */
/* cli/options.h - the options of the command line. */
#ifndef SEMLOCK_CLI_OPTIONS_H
#define SEMLOCK_CLI_OPTIONS_H

#include "cli/request.h"

/* Fill REQUEST from ARGV.  Ends the program with EXIT_USAGE, and a message, when ARGV makes no sense;
 * with EXIT_SUCCESS for --help and --version. */
void request_read(struct request *request, int argc, char **argv);

/* Options without a letter. */
enum {
	OPT_DIE_WITH_PARENT = 256, OPT_FCNTL, OPT_FD, OPT_FIRST, OPT_HOLD, OPT_INIT, OPT_JSON, OPT_KILL_AFTER, OPT_LOG,
	OPT_LENGTH, OPT_MIN_HOLD, OPT_MODE, OPT_NAME, OPT_NESTED, OPT_OLDER, OPT_ON_LOST, OPT_QUEUE_MAX,
	OPT_REPLACE, OPT_RM, OPT_RUN_TIMEOUT, OPT_SIGNAL, OPT_STALE, OPT_START, OPT_STATUS_FD,
	OPT_TAKE, OPT_TOGGLE, OPT_TTL, OPT_WHO,
};

#endif
