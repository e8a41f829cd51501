/* SPDX-License-Identifier: MIT */
/* cli/operands.h - the words behind the options: LOCK, FD and COMMAND. */
#ifndef SEMLOCK_CLI_OPERANDS_H
#define SEMLOCK_CLI_OPERANDS_H

#include "cli/reading.h"
#include "cli/request.h"

/* Fill REQUEST from WORDS, which end with NULL, and from --name and --fd in READING: its first
 * lock, and what runs under it; with --who, all locks.  Ends the program with a message if WORDS
 * make no sense: EXIT_USAGE, or for --name what named_lock_path() says. */
void operands_read(struct request *request, struct reading *reading, char **words);

#endif
