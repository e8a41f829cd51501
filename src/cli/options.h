/* SPDX-License-Identifier: MIT */
/* cli/options.h - reads the options of a command line. */
#ifndef SEMLOCK_CLI_OPTIONS_H
#define SEMLOCK_CLI_OPTIONS_H

#include "cli/reading.h"
#include "cli/request.h"

/* Fill REQUEST and READING, which hold the defaults, from the options of ARGV.  Returns the number
 * of words before LOCK.  Ends the program for an unknown option or an invalid value, with
 * EXIT_USAGE and a message, and after --help and --version. */
int options_read(struct request *request, struct reading *reading, int argc, char **argv);

#endif
