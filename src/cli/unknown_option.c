/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/option_table.h"
#include "cli/unknown_option.h"
#include "report/error.h"
#include "report/text.h"

/* What other tools call it; and as it is called here. */
static const struct {
	char theirs[16];
	char hint[56];
} elsewhere[] = {
    {"acquire", "; semlock LOCK COMMAND acquires it"},
    {"bg", "; the shell does that: semlock LOCK COMMAND &"},
    {"check", "; semlock-check(1) is a program of its own"},
    {"fg", "; COMMAND runs in the foreground"},
    {"force", "; did you mean --replace?"},
    {"id", "; did you mean --name?"},
    {"jobs", "; did you mean --slots, or -j?"},
    {"list", "; did you mean --who?"},
    {"lock", "; LOCK is no option: semlock LOCK COMMAND"},
    {"lockfile", "; LOCK is no option: semlock LOCK COMMAND"},
    {"max-hold", "; did you mean --run-timeout?"},
    {"max-time", "; did you mean --run-timeout?"},
    {"maxtime", "; did you mean --run-timeout?"},
    {"no-wait", "; did you mean --nonblock?"},
    {"nowait", "; did you mean --nonblock?"},
    {"parallel", "; did you mean --slots, or -j?"},
    {"permits", "; did you mean --slots, or -j?"},
    {"priority", "; did you mean --first?"},
    {"read", "; did you mean --shared?"},
    {"retries", "; a waiter is served in turn; did you mean --wait?"},
    {"retry", "; a waiter is served in turn; did you mean --wait?"},
    {"semaphore", "; did you mean --slots, or -j?"},
    {"sleep", "; a waiter is served in turn; did you mean --wait?"},
    {"steal", "; did you mean --replace?"},
    {"try", "; did you mean --nonblock?"},
    {"watch", "; did you mean --who?"},
    {"write", "; did you mean --exclusive?"},
};

/* "; did you mean --wait?" for WORD, of LENGTH bytes, without its dashes; or "".  The text may lie
 * in SIMILAR. */
static const char *hint(const struct option_table *table, const char *word, size_t length,
    struct similar *similar)
{
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strlen(elsewhere[i].theirs) == length &&
		    strncmp(word, elsewhere[i].theirs, length) == 0)
			return elsewhere[i].hint;
	*similar = (struct similar){.word = word, .length = length};
	for (unsigned i = 0; i < table->names; i++)
		similar_try(similar, table->longs[i].name);
	return similar_hint(similar, "--", "");
}

/* Put the options that begin with the LENGTH bytes at PREFIX into TEXT, by the alphabet: "--nested
 * or --no-fork".  Returns how many there are. */
static unsigned list_options(const struct option_table *table, const char *prefix, size_t length,
    char *text, size_t size)
{
	const char *last = "", *next;
	unsigned count = 0;

	*text = '\0';
	do {
		next = NULL;
		for (unsigned i = 0; i < table->names; i++) {
			const char *name = table->longs[i].name;

			if (strncmp(name, prefix, length) == 0 && strcmp(name, last) > 0 &&
			    (next == NULL || strcmp(name, next) < 0))
				next = name;
		}
		if (next != NULL) {
			snprintf(text + strlen(text), size - strlen(text), "%s--%s",
			    count == 0 ? "" : " or ", next);
			last = next;
			count++;
		}
	} while (next != NULL);
	return count;
}

void unknown_option_refuse(const struct option_table *table, int argc, char **argv)
{
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
	const char *bundle =
	    optind < argc && optind > 0 && argv[optind][0] == '-' ? argv[optind] : word;
	const size_t length = strlen(word) > 2 ? strcspn(word + 2, "=") : 0;
	struct similar similar;
	char like[256];
	unsigned count;

	/* In a bundle of letters, WORD is the one before it.  With --shared=yes, optopt is what
	 * getopt_long(3) answers for a known option. */
	if ((optopt > 0 && option_of(optopt) == OPTIONS) || strncmp(word, "--", 2) != 0) {
		if (strlen(bundle) < 3 || bundle[0] != '-' || bundle[1] == '-' ||
		    strchr(bundle, optopt) == NULL)
			bundle = word;
		die(EXIT_USAGE, "-%c: there is no such option%s (see --help)", optopt,
		    bundle[0] == '-' && strlen(bundle) > 3
			? hint(table, bundle + 1, strcspn(bundle + 1, "="), &similar)
			: "");
	}
	count = list_options(table, word + 2, length, like, sizeof like);
	if (count > 1)
		die(EXIT_USAGE, "%s: could be %s", word, like);
	if (count == 1)
		die(EXIT_USAGE, "%s: this option takes no value", word);
	die(EXIT_USAGE, "%s: there is no such option%s (see --help)", word,
	    hint(table, word + 2, length, &similar));
}
