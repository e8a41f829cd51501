/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "methods/table.h"
#include "cli/option_table.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "lock/method.h"
#include "methods/server/locksmith.h"
#include "report/error.h"
#include "report/text.h"

static const char synopsis[] =
    "Usage: semlock [OPTION...] LOCK COMMAND [ARG...]\n"
    "       semlock [OPTION...] LOCK -c 'SHELL COMMAND'\n"
    "       semlock [OPTION...] FD\n"
    "       semlock --hold [OPTION...] LOCK\n"
    "       semlock --who [--json] [LOCK...]\n"
    "Run COMMAND while holding LOCK: a file, a directory, or a URL.  Or lock FD, an\n"
    "open descriptor of the calling shell.\n";

static const char epilogue[] =
    "Exit status: COMMAND's own, 128+n if signal n ended it; 1 (-E): busy; 124: run\n"
    "timeout; 126, 127: COMMAND cannot be run; 64 usage, 65 not lockable, 66 cannot\n"
    "open, 69 unavailable, 70 internal, 71 system, 73 cannot create, 76 lost, 77 not\n"
    "permitted.  More, with examples: semlock(1).\n";

/* Print "  -n, --nb, --nonblock  do not wait: fail at once", or without help a part of such a line.
 * AT: the column, 0 at the beginning of a line; returns the next one's. */
static int print_option(int at, const struct option_row *row)
{
	const int help_at = 25;
	const char *letter = row->letters, *name = row->names, *comma = "";
	size_t length;

	if (at > 0)
		at += printf(", ");
	else
		at += printf(*letter != '\0' ? "  " : "      ");
	for (; *letter != '\0'; letter++, comma = ", ")
		at += printf("%s-%c", comma, *letter);
	for (; *name != '\0'; name += length + (name[length] == ' '), comma = ", ") {
		length = strcspn(name, " ");
		at += printf("%s--%.*s", comma, (int)length, name);
	}
	at += printf("%s", row->argument);
	if (row->help[0] == '\0')
		return at;
	printf("%*s%s\n", at + 2 <= help_at ? help_at - at : 2, "", row->help);
	return 0;
}

static void print_options(void)
{
	int at = 0;

#define HEADING(text) puts(text);
#define OPTION(id, letters, names, argument, locks, action, help) \
	at = print_option(at, &option_rows[OPT_##id]);
#include "cli/options.def"
}

void usage_help(void)
{
	struct similar nothing = {.word = ""};
	const struct method *method;
	bool of_files = false;
	char names[400];

	/* The shells' completions read what is printed from here on: the options, SIG:, METHOD:,
	 * and the schemes. */
	fputs(synopsis, stdout);
	print_options();
	value_signal_names(names, sizeof names, " ");
	printf("SIG: %s\nMETHOD:", names);
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		if (!of_files && method->family == OF_FILES)
			fputs("; made of files:", stdout);
		of_files = method->family == OF_FILES;
		printf(" %s", method->name);
	}
	locksmith_schemes(names, sizeof names, &nothing);
	printf("\nURL: SCHEME://[USER@]HOST/NAME, by semlock-locksmith-SCHEME.\n"
	       "Installed for SCHEME:\n %s\n",
	    names);
	fputs(epilogue, stdout);
	end_output(EXIT_SUCCESS);
}

void usage_version(bool as_flock)
{
	printf("%s %s\n", as_flock ? "flock from semlock" : "semlock", PACKAGE_VERSION);
	end_output(EXIT_SUCCESS);
}
