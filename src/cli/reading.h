/* SPDX-License-Identifier: MIT */
/* cli/reading.h - the command line while it is read.  A command line that makes no sense ends the
 * program with EXIT_USAGE, and a message. */
#ifndef SEMLOCK_CLI_READING_H
#define SEMLOCK_CLI_READING_H

#include <getopt.h>
#include <stdnoreturn.h>

#include "cli/request.h"
#include "report/error.h"

/* What the command line says beside its request, to check it by. */
struct reading {
	enum lock_mode mode; /* of the next lock to be named */
	const char *name;    /* --name; NULL */
	int fd;              /* --fd */
	bool limited, kills; /* --run-timeout, --kill-after */
	bool acts;           /* an option that does not go with --who */
	bool method_named, fcntl_asked, range_asked, mode_given, fd_given, shell;
};

/* Options without a letter. */
enum {
	OPT_DIE_WITH_PARENT = 256,
	OPT_FCNTL,
	OPT_FD,
	OPT_FIRST,
	OPT_HOLD,
	OPT_INIT,
	OPT_JSON,
	OPT_KILL_AFTER,
	OPT_LOG,
	OPT_LENGTH,
	OPT_MIN_HOLD,
	OPT_MODE,
	OPT_NAME,
	OPT_NESTED,
	OPT_OLDER,
	OPT_ON_LOST,
	OPT_QUEUE_MAX,
	OPT_REPLACE,
	OPT_RM,
	OPT_RUN_TIMEOUT,
	OPT_SIGNAL,
	OPT_STALE,
	OPT_START,
	OPT_STATUS_FD,
	OPT_TAKE,
	OPT_TOGGLE,
	OPT_TTL,
	OPT_WHO,
};

/* Refuse what REQUEST must not ask for: options that contradict each other, or that its method
 * cannot honour. */
void options_check(const struct request *request, const struct reading *reading);

/* The options, for getopt_long(3), and what to say of one that it does not know. */
extern const struct option usage_options[];
extern const char usage_letters[];
noreturn void usage_refuse(int argc, char **argv);

/* Is WORD, which begins with a dash, one of the options, alone: "-n", "--wait", "--wait=5"? */
bool usage_knows(const char *word);

/* Print the help, or the version, on standard output, and end the program with EXIT_SUCCESS, or
 * with EXIT_SYSTEM if the write fails. */
noreturn void usage_help(void);
noreturn void usage_version(bool as_flock);

/* ---- the values of options ----
 *
 * OPTION is for the message: if TEXT makes no sense, each of these ends the program with
 * EXIT_USAGE, and a message that names both. */

/* -m: the method called NAME. */
const struct method *value_method(const char *name);

/* -w: ns.  A negative time ends the program with NEGATIVE_STATUS. */
int64_t value_wait(const char *text, int negative_status);

/* --run-timeout, --kill-after, --min-hold, --stale, --ttl: LEAST ns (0 or 1), or more. */
int64_t value_duration(const char *option, const char *text, int64_t least);

/* --on-lost: LOST_WARN, or a signal's number. */
int value_on_lost(const char *text);

/* --signal, --replace, --toggle: a signal's number, from its name or number. */
int value_signal(const char *option, const char *text);

/* The names of the signals that value_signal() knows, with SEPARATOR between them, into TEXT. */
void value_signal_names(char *text, size_t size, const char *separator);

/* A whole number from LEAST, which is not negative, to MOST; WHAT is its name in the message: "an
 * exit status". */
long value_number(const char *option, const char *text, const char *what, long least, long most);

/* --mode: octal, up to 0777. */
mode_t value_mode(const char *text);

/* --fd, --status-fd, FD: a descriptor's number, open or not. */
int value_fd(const char *option, const char *text);

/* --start, --length: bytes, up to MOST, with the suffixes of flock(1) (K, KiB: 1024; KB: 1000; up
 * to E). */
off_t value_size(const char *option, const char *text, off_t most);

/* ---- --name: a lock in the user's own directory ---- */

/* The path of the lock called NAME: root's is in /run/semlock (0755), another user's in
 * .local/state/semlock (0700) in the home directory of the password database, whatever the
 * environment says.  With CREATE, the directory is made if it is not there.  Returns a string for
 * free(3), or NULL with ERROR filled. */
char *named_lock_path(const char *name, bool create, struct error *error);

#endif
