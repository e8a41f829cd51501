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
#include "cli/values.h"
#include "report/error.h"

static char **shell_command(char **words)
{
	static char *argv[4];
	static char dash_c[] = "-c", sh[] = "/bin/sh";
	char *shell = getenv("SHELL");

	if (words[0] == NULL || words[1] != NULL)
		die(EXIT_USAGE, "-c takes exactly one string, the shell command");
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
	size_t digits = 0;

	/* strspn(3) would cost each start two pages */
	while (word[digits] >= '0' && word[digits] <= '9')
		digits++;
	return digits > 0 && word[digits] == '\0';
}

static noreturn void refuse_without_command(const struct request *request, const char *word)
{
	if (!request->as_flock && strstr(word, "://") != NULL)
		die(EXIT_USAGE, "what to run is missing after %s", word);
	if (request->as_flock)
		die(EXIT_USAGE,
		    "what to run is missing after %s (only a descriptor's number may stand alone)",
		    word);
	die(EXIT_USAGE,
	    "what to run is missing after %s (only a descriptor's number may stand alone); to lock "
	    "the rest of a script: exec 8>>%s; semlock -n 8",
	    word, word);
}

/* LOCK without a command is the number of a caller's descriptor. */
static int operand_fd(const struct request *request, const char *word)
{
	if (request->unlock)
		return value_fd("-u", word);
	if (*word == '\0')
		die(EXIT_USAGE, "LOCK is an empty word: is a variable not set?");
	if (word[strspn(word, " \t+0123456789")] != '\0')
		refuse_without_command(request, word);
	return value_fd("FD", word);
}

/* Refuse what would only fail as a command that is not found.  flock(1) tries to run it. */
static void check_command(const char *lock, const char *word, bool behind_lock)
{
	if (*word == '\0')
		die(EXIT_USAGE, "COMMAND is an empty word: is a variable not set?");
	if (behind_lock && strcmp(word, "--") == 0)
		die(EXIT_USAGE, "--: COMMAND is missing behind it");
	if (behind_lock && *word == '-' && option_known(word))
		die(EXIT_USAGE, "%s: options stand before LOCK; to run what is called so: -- %s",
		    word, word);
	if (behind_lock && *word == '-')
		die(EXIT_USAGE,
		    "%s: COMMAND begins with a dash: is LOCK missing before %s? To run what is "
		    "called so: -- %s",
		    word, lock, word);
}

/* "semlock 8 COMMAND" locks a file, as flock(1) does: here that is not done by mistake. */
static void refuse_number_of_fd(const struct request *request, const char *word)
{
	if (!is_number(word) || strlen(word) >= 6 || atoi(word) <= STDERR_FILENO ||
	    fcntl(atoi(word), F_GETFD) < 0 || access(word, F_OK) == 0)
		return;
	if (request->hold || request->held)
		die(EXIT_USAGE,
		    "%s: %s: descriptor %s is the caller's to hold: name its file; a file of this "
		    "name is ./%s",
		    request->hold ? "--hold" : "--held", word, word, word);
	die(EXIT_USAGE, "%s: to lock descriptor %s: --fd=%s; a file of this name is ./%s", word,
	    word, word, word);
}

/* Without --hold the other two are refused, in the words of rules.def. */
static bool needs_no_command(const struct request *request)
{
	return request->hold || request->detach || request->keep_place || request->held ||
	       request->release != NULL || request->resume != NULL;
}

/* Read what is to be locked.  Returns the words behind it. */
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
		die(EXIT_USAGE, "-f adds to LOCK; LOCK itself is missing");
	if (words[0] == NULL && (request->release != NULL || request->resume != NULL)) {
		const char *option = request->release != NULL ? "release" : "resume";

		die(EXIT_USAGE, "--%s takes an ID, and LOCK stands behind it: --%s=ID LOCK", option,
		    option);
	}
	if (words[0] == NULL)
		die(EXIT_USAGE, "what to lock is missing (see --help)");
	request->label = words[0];
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
	/* else behind the options */
	bool behind_lock = !given(reading, OPT(NAME) | OPT(FD));

	words = read_lock(request, reading, words);
	if (!is_shell && words[0] != NULL &&
	    (strcmp(words[0], "-c") == 0 || strcmp(words[0], "--command") == 0)) {
		is_shell = true;
		words++;
	} else if (!is_shell && words[0] != NULL && words[1] != NULL &&
		   strcmp(words[0], "--") == 0) {
		words++;
		behind_lock = false;
	}
	if (!is_shell && words[0] != NULL && !request->as_flock)
		check_command(request->label, words[0], behind_lock);
	if (is_shell)
		request->command = shell_command(words);
	else if (words[0] != NULL)
		request->command = words;
	if (reading->name != NULL && request->command == NULL && !needs_no_command(request))
		die(EXIT_USAGE, "--name: what to run is missing (see --help)");
}

static void read_all_locks(struct request *request, const struct reading *reading, char **words)
{
	request->nlocks = 0;
	if (reading->name != NULL)
		request->locks[request->nlocks++] =
		    (struct lock_spec){.name = named_lock(reading->name, false), .of_user = true};
	for (; *words != NULL; words++) {
		if (**words == '-')
			die(EXIT_USAGE,
			    "%s: options stand before LOCK; a file that is called so is ./%s",
			    *words, *words);
		request->locks[request->nlocks++] = (struct lock_spec){.name = *words, .fd = -1};
	}
	request->label = request->locks[0].name;
}

void operands_read(struct request *request, struct reading *reading, char **words)
{
	if (given(reading, OPT(JSON)) && !request->who)
		return; /* rules.def has the words */
	if (request->who)
		read_all_locks(request, reading, words);
	else
		read_one_lock(request, reading, words);
}
