/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "cli/named_lock.h"
#include "cli/operands.h"
#include "cli/option_table.h"
#include "cli/unknown_option.h"
#include "cli/values.h"
#include "report/error.h"

static char **shell_command(char **words)
{
	static char *argv[4];
	static char dash_c[] = "-c", sh[] = "/bin/sh";
	char *shell = getenv("SHELL");

	if (words[0] == NULL || words[1] != NULL)
		die(EXIT_USAGE, "-c requires exactly one argument, the shell command");
	argv[0] = shell != NULL && *shell != '\0' ? shell : sh;
	argv[1] = dash_c;
	argv[2] = words[0];
	return argv;
}

static const char *named_lock(const char *name, bool create)
{
	struct error error;
	const char *path = named_lock_path(name, create, &error);

	if (path == NULL)
		die(exit_status_of(error.kind), "--name %s: %s", name, error.text);
	return path;
}

static bool is_number(const char *word)
{
	const size_t digits = strspn(word, "0123456789");

	return digits > 0 && word[digits] == '\0';
}

static noreturn void refuse_without_command(const struct request *request, const char *word)
{
	const char *instead = request->as_flock ? NULL : subcommand_hint(word);

	if (instead != NULL)
		die(EXIT_USAGE, "no command given after %s; semlock has no subcommands: %s", word,
		    instead);
	if (!request->as_flock && strstr(word, "://") != NULL)
		die(EXIT_USAGE, "no command given after %s", word);
	if (request->as_flock)
		die(EXIT_USAGE, "no command given after %s (only a descriptor number needs none)",
		    word);
	die(EXIT_USAGE,
	    "no command given after %s (only a descriptor number needs none); to lock "
	    "the rest of a script: exec 8>>%s; semlock -n 8",
	    word, word);
}

/* LOCK without a command is the number of a caller's descriptor. */
static int operand_fd(const struct request *request, const char *word)
{
	if (request->unlock)
		return value_fd("-u", word);
	if (*word == '\0')
		die(EXIT_USAGE, "LOCK is empty (unset variable?)");
	if (word[strspn(word, " \t+0123456789")] != '\0')
		refuse_without_command(request, word);
	return value_fd("FD", word);
}

/* Would OPTION accept WORD as its value: a signal, or a process ID? */
static bool is_value_of(enum option_id option, const char *word)
{
	if (option == OPT_REPLACE || option == OPT_TOGGLE)
		return value_is_signal(word);
	return is_number(word);
}

/* In "--hold 4242 --detach LOCK", 4242 was taken for LOCK, because an optional value must follow
 * "=".  Refuse such a WORD, unless a file of that name exists. */
static void refuse_detached_value(const struct request *request, const struct reading *reading,
    const char *word)
{
	static const enum option_id options[] = {OPT_HOLD, OPT_DIE_WITH_PARENT, OPT_REPLACE,
	    OPT_TOGGLE};
	const bool has_value[] = {request->owner != 0, request->parent != 0, reading->has_signal,
	    reading->has_signal};

	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (given(reading, OPTION_BIT(options[i])) && !has_value[i] &&
		    is_value_of(options[i], word) && access(word, F_OK) != 0)
			die(EXIT_USAGE,
			    "%s %s: a value must follow an equals sign: %s=%s; a file of this name "
			    "is ./%s",
			    option_name(options[i]), word, option_name(options[i]), word, word);
}

/* Refuse a COMMAND that could only fail with "command not found".  Not called when invoked as
 * flock: flock(1) tries to run it. */
static void check_command(const char *lock, const char *word, bool after_lock)
{
	if (*word == '\0')
		die(EXIT_USAGE, "COMMAND is empty (unset variable?)");
	if (after_lock && strcmp(word, "--") == 0)
		die(EXIT_USAGE, "no command given after --");
	if (after_lock && *word == '-' && option_known(word))
		die(EXIT_USAGE,
		    "%s: options must precede LOCK; to run a command of this name: -- %s", word,
		    word);
	if (after_lock && *word == '-')
		die(EXIT_USAGE,
		    "%s: COMMAND begins with a dash (is LOCK missing before %s?); to run a command "
		    "of this name: -- %s",
		    word, lock, word);
}

/* "semlock 8 COMMAND" locks the file 8, as with flock(1).  Refuse it if 8 is an open descriptor and
 * no such file exists: the descriptor is meant. */
static void refuse_number_of_fd(const struct request *request, const char *word)
{
	if (!is_number(word) || strlen(word) >= 6 || atoi(word) <= STDERR_FILENO ||
	    fcntl(atoi(word), F_GETFD) < 0 || access(word, F_OK) == 0)
		return;
	if (request->hold || request->held)
		die(EXIT_USAGE,
		    "%s: %s: only the caller can hold a lock on its descriptor %s: name its file; "
		    "a file called %s is ./%s",
		    request->hold ? "--hold" : "--held", word, word, word, word);
	die(EXIT_USAGE,
	    "%s is ambiguous: to lock descriptor %s: --fd=%s; a file of this name is ./%s", word,
	    word, word, word);
}

/* Does REQUEST need no command?  --detach and --keep-place need none even without --hold: rules.def
 * refuses that with a better message than "no command given". */
static bool needs_no_command(const struct request *request)
{
	return request->hold || request->detach || request->keep_place || request->held ||
	       request->release != NULL || request->resume != NULL;
}

/* Read LOCK or FD.  Returns the words that follow it. */
static char **read_lock(struct request *request, struct reading *reading, char **words)
{
	struct lock_spec *first = &request->locks[0];

	*first = (struct lock_spec){.fd = reading->fd, .mode = reading->mode};
	if (reading->name != NULL) {
		request->label = first->name = named_lock(reading->name, true);
		first->of_user = true;
		return words;
	}
	if (given(reading, OPT(FD)))
		return words;
	if (words[0] == NULL && given(reading, OPT(FILE)))
		die(EXIT_USAGE, "-f adds to LOCK, but no LOCK was given");
	if (words[0] == NULL && (request->release != NULL || request->resume != NULL)) {
		const char *option = request->release != NULL ? "release" : "resume";

		die(EXIT_USAGE, "--%s requires an ID and LOCK: --%s=ID LOCK", option, option);
	}
	if (words[0] == NULL)
		die(EXIT_USAGE, "no LOCK given (see --help)");
	request->label = words[0];
	/* without --hold, a lone word is a descriptor's number: do not refuse it */
	if (words[1] != NULL || request->hold)
		refuse_detached_value(request, reading, words[0]);
	if (words[1] == NULL && !needs_no_command(request)) {
		first->fd = operand_fd(request, words[0]);
		reading->given |= OPT(FD);
	} else {
		if (!request->as_flock && request->release == NULL && request->resume == NULL)
			refuse_number_of_fd(request, words[0]);
		first->name = words[0];
	}
	return words + 1;
}

static void read_one_lock(struct request *request, struct reading *reading, char **words)
{
	bool is_shell = given(reading, OPT(COMMAND));
	/* with --name or --fd, COMMAND follows the options */
	bool after_lock = !given(reading, OPT(NAME) | OPT(FD));

	words = read_lock(request, reading, words);
	if (!is_shell && words[0] != NULL &&
	    (strcmp(words[0], "-c") == 0 || strcmp(words[0], "--command") == 0)) {
		is_shell = true;
		words++;
	} else if (!is_shell && words[0] != NULL && words[1] != NULL &&
		   strcmp(words[0], "--") == 0) {
		words++;
		after_lock = false;
	}
	if (!is_shell && words[0] != NULL && !request->as_flock)
		check_command(request->label, words[0], after_lock);
	if (is_shell)
		request->command = shell_command(words);
	else if (words[0] != NULL)
		request->command = words;
	if (reading->name != NULL && request->command == NULL && !needs_no_command(request))
		die(EXIT_USAGE, "--name: no command given (see --help)");
}

static void read_all_locks(struct request *request, const struct reading *reading, char **words)
{
	request->nlocks = 0;
	if (reading->name != NULL)
		request->locks[request->nlocks++] =
		    (struct lock_spec){.name = named_lock(reading->name, false),
			.of_user = true,
			.fd = -1};
	for (; *words != NULL; words++) {
		if (**words == '-')
			die(EXIT_USAGE,
			    "%s: options must precede LOCK; a file of this name is ./%s", *words,
			    *words);
		request->locks[request->nlocks++] = (struct lock_spec){.name = *words, .fd = -1};
	}
	request->label = request->locks[0].name;
}

void operands_read(struct request *request, struct reading *reading, char **words)
{
	if (given(reading, OPT(JSON)) && !request->who)
		return; /* rules.def refuses --json without --who */
	if (request->who)
		read_all_locks(request, reading, words);
	else
		read_one_lock(request, reading, words);
}
