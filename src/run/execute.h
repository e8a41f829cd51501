/* run/execute.h - becoming another program, whatever kind of file it is in. */
#ifndef SEMLOCK_RUN_EXECUTE_H
#define SEMLOCK_RUN_EXECUTE_H

/* Become ARGV, its first word looked up in PATH; a file of no known format is the shell's.
 * Returns errno when that fails.  May be called where memory is shared with a parent. */
int execute(char **argv);

#endif
