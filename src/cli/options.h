/* SPDX-License-Identifier: MIT */
/* cli/options.h - the options of a command line are read. */
#ifndef SEMLOCK_CLI_OPTIONS_H
#define SEMLOCK_CLI_OPTIONS_H

#include "cli/reading.h"
#include "cli/request.h"

/* Fill REQUEST and READING, which hold the defaults, from the options of ARGV.  Returns the number
 * of words before LOCK.  Ends the program with EXIT_USAGE and a message for an option or a value
 * that is none; as --help and --version do. */
int options_read(struct request *request, struct reading *reading, int argc, char **argv);

#endif
