/* SPDX-License-Identifier: MIT */
/* cli/usage.h - --help and --version.  Each prints on standard output, and ends the program with
 * EXIT_SUCCESS, or with EXIT_SYSTEM if the write fails. */
#ifndef SEMLOCK_CLI_USAGE_H
#define SEMLOCK_CLI_USAGE_H

#include <stdbool.h>
#include <stdnoreturn.h>

noreturn void usage_help(void);
noreturn void usage_version(bool as_flock);

#endif
