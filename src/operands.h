/* operands.h - what stands behind the options on the command line. */
#ifndef SEMLOCK_OPERANDS_H
#define SEMLOCK_OPERANDS_H

#include "options.h"
#include "rules.h"

/* LOCK and a command, or FD alone; behind --fd and --name, a command.  Sets OPTIONS' first
 * lock, label and command; ends semlock with EXIT_USAGE when WORDS make no sense. */
void operands_read(struct options *options, struct reading *reading, char **words);

/* Behind --who and --check: locks and nothing else. */
void operands_locks(struct options *options, const struct reading *reading, char **words);

#endif
