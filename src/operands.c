#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "exitcode.h"
#include "names.h"
#include "operands.h"
#include "report.h"
#include "values.h"

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

static const char *named(const char *name, bool create)
{
	struct why why;
	const char *path = names_path(name, create, &why);

	if (path == NULL)
		die(exit_status_of(why.trouble), "--name %s: %s", name, why.text);
	return path;
}

void operands_read(struct options *options, const struct reading *reading, char **words)
{
	struct wanted *first = &options->locks[0];
	bool is_shell = reading->shell;

	*first = (struct wanted){.fd = reading->fd, .mode = reading->mode};
	if (reading->name != NULL) {
		options->label = first->name = named(reading->name, true);
	} else if (!reading->fd_given) {
		if (words[0] == NULL)
			die(EXIT_USAGE, "what to lock is missing (see semlock --help)");
		options->label = words[0];
		if (words[1] == NULL && !options->stands) {
			first->fd = value_fd(words[0]);
			return;
		}
		first->name = *words++;
	}
	if (!is_shell && words[0] != NULL &&
	    (strcmp(words[0], "-c") == 0 || strcmp(words[0], "--command") == 0)) {
		is_shell = true;
		words++;
	} else if (!is_shell && words[0] != NULL && words[1] != NULL && strcmp(words[0], "--") == 0) {
		words++;
	}
	if (is_shell)
		options->command = shell_command(words);
	else if (words[0] != NULL)
		options->command = words;
	if (reading->name != NULL && options->command == NULL && !options->stands)
		die(EXIT_USAGE, "--name: what to run is missing (see semlock --help)");
}

void operands_locks(struct options *options, const struct reading *reading, char **words)
{
	options->nlocks = 0;
	if (reading->name != NULL)
		options->locks[options->nlocks++].name = named(reading->name, false);
	else if (words[0] == NULL)
		die(EXIT_USAGE, "--who, --check: which lock? (see semlock --help)");
	for (; *words != NULL; words++)
		options->locks[options->nlocks++] = (struct wanted){.name = *words, .fd = -1};
	options->label = options->locks[0].name;
}
