/* cli/usage.h - what --help and --version print. */
#ifndef SEMLOCK_CLI_USAGE_H
#define SEMLOCK_CLI_USAGE_H

#include <stdbool.h>
#include <stdnoreturn.h>

/* Print the help, or the version, on standard output and exit: 0, or EXIT_SYSTEM when it
 * could not be written. */
noreturn void usage_help(void);
noreturn void usage_version(bool as_flock);

#endif
