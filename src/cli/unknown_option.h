/* SPDX-License-Identifier: MIT */
/* cli/unknown_option.h - "unknown option; did you mean --wait?" */
#ifndef SEMLOCK_CLI_UNKNOWN_OPTION_H
#define SEMLOCK_CLI_UNKNOWN_OPTION_H

#include <stdnoreturn.h>

#include "cli/option_table.h"

/* getopt_long(3), with TABLE, has answered '?' for ARGV, of ARGC words: end the program with
 * EXIT_USAGE, and a message that says why. */
noreturn void unknown_option_refuse(const struct option_table *table, int argc, char **argv);

/* getopt_long(3) has taken WORD, such as "--status" or "--status=3", for the option NAME.  If WORD
 * only abbreviates NAME, and means something else in other tools, refuse it in the same way. */
void unknown_option_refuse_abbreviation(const char *word, const char *name);

/* WORD is a bundle of letters with -h or -V among them, which would end the program with status 0.
 * If one of its letters is not an option ("-child-exit-code"), refuse it in the same way. */
void unknown_option_check_bundle(const char *word);

/* If WORD, which was taken for LOCK, is a subcommand of other tools ("acquire", "status"), returns
 * what to write instead, as a part of a sentence.  Otherwise returns NULL. */
const char *subcommand_hint(const char *word);

#endif
