/* SPDX-License-Identifier: MIT */
/* cli/operands.h - the words after the options: LOCK, FD and COMMAND. */
#ifndef SEMLOCK_CLI_OPERANDS_H
#define SEMLOCK_CLI_OPERANDS_H

#include "cli/reading.h"
#include "cli/request.h"

/* Fill REQUEST's first lock, and what runs under it; with --who, fill all its locks.  They come
 * from WORDS, which end with NULL, and from --name and --fd in READING.  If WORDS are invalid, ends
 * the program with EXIT_USAGE and a message; if --name fails, with the status of
 * named_lock_path()'s error. */
void operands_read(struct request *request, struct reading *reading, char **words);

#endif
