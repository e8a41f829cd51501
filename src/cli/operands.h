/* cli/operands.h - what stands behind the options.  Nonsense ends semlock, with EXIT_USAGE. */
#ifndef SEMLOCK_CLI_OPERANDS_H
#define SEMLOCK_CLI_OPERANDS_H

#include "cli/options.h"
#include "cli/check_options.h"

/* WORDS, ended by NULL: LOCK and a command, or FD alone; behind --fd or --name, a command;
 * behind --hold, LOCK. */
void operands_read(struct request *request, const struct reading *reading, char **words);

/* Behind --who and --check: locks and nothing else. */
void operands_locks(struct request *request, const struct reading *reading, char **words);

#endif
