/* SPDX-License-Identifier: MIT */
/* cli/unknown_option.h - "there is no such option; did you mean --wait?" */
#ifndef SEMLOCK_CLI_UNKNOWN_OPTION_H
#define SEMLOCK_CLI_UNKNOWN_OPTION_H

#include <stdnoreturn.h>

#include "cli/option_table.h"

/* getopt_long(3), with TABLE, has answered '?' for ARGV, of ARGC words: end the program with
 * EXIT_USAGE, and a message that says why. */
noreturn void unknown_option_refuse(const struct option_table *table, int argc, char **argv);

#endif
