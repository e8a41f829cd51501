/* cli/usage.h - what --help and --version print. */
#ifndef SEMLOCK_CLI_USAGE_H
#define SEMLOCK_CLI_USAGE_H

#include <stdbool.h>
#include <stdnoreturn.h>

/* Print the help, or the version, on standard output, and end the program with EXIT_SUCCESS, or with
 * EXIT_SYSTEM if the write fails. */
noreturn void usage_help(void);
noreturn void usage_version(bool as_flock);

#endif
