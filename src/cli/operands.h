/* cli/operands.h - the words behind the options.  Nonsense ends the program with EXIT_USAGE. */
#ifndef SEMLOCK_CLI_OPERANDS_H
#define SEMLOCK_CLI_OPERANDS_H

#include "cli/request.h"

/* WORDS, ended by NULL: LOCK and a command, or FD alone; behind --fd or --name, a command;
 * behind --hold, LOCK. */
void operands_read(struct request *request, const struct reading *reading, char **words);

/* Behind --who and --check: locks and nothing else. */
void operands_locks(struct request *request, const struct reading *reading, char **words);

#endif
