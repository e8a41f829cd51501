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
    "       semlock --hold[=PID] [--detach] [OPTION...] LOCK\n"
    "       semlock --release=ID LOCK\n"
    "       semlock --who [--json] [LOCK...]\n"
    "Run COMMAND while holding LOCK, a file, directory or URL; or lock an open FD.\n";

static const char epilogue[] =
    "\nExit status: COMMAND's own, 128+n if signal n ended it; 1 (-E): busy; 124: run\n"
    "timeout; 126, 127: COMMAND cannot be run; 64 usage, 65 not lockable, 66 cannot\n"
    "open, 69 unavailable, 70 internal, 71 system, 73 cannot create, 76 lost, 77 not\n"
    "permitted.  The manual: semlock(1).\n"
    "\nExamples:\n"
    "  semlock /tmp/job.lock echo alone            wait in a queue, then run echo\n"
    "  semlock -n -E 0 --name=report echo alone    skip it while the last one runs\n"
    "  semlock --who /tmp/job.lock                 who holds it, and who waits\n";

/* Print one option, such as "  -n, --nb, --nonblock  fail rather than wait". */
static void print_option(const struct option_row *row)
{
	const int help_at = 25;
	int at = 0;
	const char *letter = row->letters, *name = row->names, *comma = "";
	size_t length;

	at += printf(*letter != '\0' ? "  " : "      ");
	for (; *letter != '\0'; letter++, comma = ", ")
		at += printf("%s-%c", comma, *letter);
	for (; *name != '\0'; name += length + (name[length] == ' '), comma = ", ") {
		length = strcspn(name, " ");
		at += printf("%s--%.*s", comma, (int)length, name);
	}
	at += printf("%s", row->argument);
	printf("%*s%s\n", at + 2 <= help_at ? help_at - at : 2, "", row->help);
}

static void print_options(void)
{
#define HEADING(text) puts("\n" text);
#define OPTION(id, letters, names, argument, locks, action, help) \
	print_option(&option_rows[OPT_##id]);
#include "cli/options.def"
}

void usage_help(void)
{
	struct similar nothing = {.word = ""};
	const struct method *method;
	bool of_files = false;
	char names[400];

	/* The shells' completions parse this output: the options, SIG:, METHOD:, and the
	 * schemes. */
	fputs(synopsis, stdout);
	print_options();
	value_signal_names(names, sizeof names, " ");
	printf("\nSIG: %s\nMETHOD:", names);
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
