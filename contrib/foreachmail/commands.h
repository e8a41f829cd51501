/* commands.h - the commands that run, and the message that is passed to one of them.
 *
 *	commands_start(&how);
 *	for each message:
 *		message_open(number);
 *		message_feed(data, size);	as often as there is data
 *		message_close();
 *	return commands_finish();
 *
 * One command at a time: the message streams through a pipe while the command runs.
 * Several: a message is gathered first, in the pipe itself if it fits there, else in an unlinked
 * file.  So a command that is slow to read delays neither the reader nor the other commands.
 *
 * An error ends the program, after one line on standard error; so does a signal that ends a process.
 * See give_up() and end_by() for what becomes of the commands. */
#ifndef FOREACHMAIL_COMMANDS_H
#define FOREACHMAIL_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	EXIT_COMMAND_FAILED = 1, /* a command did */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,

	MOST_JOBS = 500, /* with keep_order each has a file open, and pselect() takes 1024 at most */
};

struct how {
	char **command; /* its words, and NULL; found in PATH */
	int jobs;       /* commands at once: 1 to MOST_JOBS */
	bool keep_order, stop_on_failure, quiet;
};

/* Call this first: handles signals, and notes how to run the commands. */
void commands_start(const struct how *wanted);

/* Begin message `number` (1, 2, 3 ... without a gap). */
void message_open(unsigned long number);

/* Gives the message `size` bytes more.  They are dropped when its command has closed its input. */
void message_feed(const char *data, size_t size);

/* Ends the message.  Returns false when no further message is to be opened, because a command
 * failed and stop_on_failure is set. */
bool message_close(void);

/* Wait for all commands.  Returns the exit status for this program. */
int commands_finish(void);

/* Sleep until `fd` can be read; signals are heeded meanwhile. */
void wait_to_read(int fd);

/* Write one line on standard error, which begins with `foreachmail: '. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Say "WHAT: WHY", and exit with `status` when the commands that run have ended.  One that has
 * only a part of its message gets SIGTERM, so that it does not take the part for the whole. */
void give_up(int status, const char *what, const char *why) __attribute__((noreturn));

#endif
