/* operands.h - what stands behind the options.  Nonsense ends semlock, with EXIT_USAGE. */
#ifndef SEMLOCK_OPERANDS_H
#define SEMLOCK_OPERANDS_H

#include "options.h"
#include "rules.h"

/* WORDS, ended by NULL: LOCK and a command, or FD alone; behind --fd or --name, a command;
 * behind --hold, LOCK. */
void operands_read(struct options *options, const struct reading *reading, char **words);

/* Behind --who and --check: locks and nothing else. */
void operands_locks(struct options *options, const struct reading *reading, char **words);

#endif
