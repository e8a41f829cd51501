/* SPDX-License-Identifier: MIT */
/* cli/read_request.h - turns a command line into a request. */
#ifndef SEMLOCK_CLI_READ_REQUEST_H
#define SEMLOCK_CLI_READ_REQUEST_H

#include "cli/request.h"

/* Fill REQUEST from ARGV.  If ARGV is invalid, ends the program with a message and EXIT_USAGE (for
 * --name, and invoked as flock, also with other statuses); after --help and --version, with
 * EXIT_SUCCESS. */
void request_read(struct request *request, int argc, char **argv);

#endif
