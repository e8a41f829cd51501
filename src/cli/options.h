/* SPDX-License-Identifier: MIT */
/* cli/options.h - reads the options of a command line. */
#ifndef SEMLOCK_CLI_OPTIONS_H
#define SEMLOCK_CLI_OPTIONS_H

#include "cli/reading.h"
#include "cli/request.h"

/* Fill REQUEST and READING, which hold the defaults, from the options of ARGV.  Returns the index
 * in ARGV of the first word that is not an option.  Ends the program after --help and --version,
 * and, with EXIT_USAGE and a message, for an unknown option or an invalid value. */
int options_read(struct request *request, struct reading *reading, int argc, char **argv);

#endif
