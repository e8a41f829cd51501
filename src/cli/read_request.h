/* SPDX-License-Identifier: MIT */
/* cli/read_request.h - turns a command line into a request. */
#ifndef SEMLOCK_CLI_READ_REQUEST_H
#define SEMLOCK_CLI_READ_REQUEST_H

#include "cli/request.h"

/* Fill REQUEST from ARGV.  Ends the program with EXIT_USAGE, and a message, if ARGV is invalid;
 * with EXIT_SUCCESS for --help and --version. */
void request_read(struct request *request, int argc, char **argv);

#endif
