/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/option_table.h"

_Static_assert(OPTIONS <= 60, "a set has 64 bits, for the options and for enum fact");

/* getopt_long(3) answers with a letter, or for a long name with LONG_NAME + OPT_ID. */
enum { LONG_NAME = 256 };

enum {
	NAMES_SIZE = 0 /* all names, with a byte behind each */
#define OPTION(id, letters, names, argument, locks, action, help) +(int)sizeof names
#define PREFIXES(id, words, argument) +(int)sizeof words
#include "cli/options.def"
	,
	NAMES_MOST = NAMES_SIZE / 2, /* a name and its blank are two bytes at least */
	LETTERS_SIZE = sizeof "+:"   /* all letters, with a colon behind each */
#define OPTION(id, letters, names, argument, locks, action, help) +2 * (int)sizeof letters
#include "cli/options.def"
};

static struct {
	struct option_table table;
	struct option longs[NAMES_MOST + 1];
	char names[NAMES_SIZE];
	size_t names_used;
	char letters[LETTERS_SIZE];
} built;

static int argument_kind(const char *argument)
{
	if (*argument == '=')
		return required_argument;
	return *argument == '[' ? optional_argument : no_argument;
}

static void add_letters(const char *letters, const char *argument)
{
	size_t used = strlen(built.letters);

	for (; *letters != '\0'; letters++) {
		built.letters[used++] = *letters;
		if (argument_kind(argument) == required_argument)
			built.letters[used++] = ':';
	}
}

static void add_names(enum option_id id, const char *names, const char *argument)
{
	char *rest = strcpy(built.names + built.names_used, names);
	const char *name;

	built.names_used += strlen(names) + 1;
	while ((name = strsep(&rest, " ")) != NULL)
		built.longs[built.table.all++] =
		    (struct option){name, argument_kind(argument), NULL, LONG_NAME + (int)id};
}

const struct option_table *option_table(void)
{
	if (built.table.longs != NULL)
		return &built.table;
	/* options stand before operands; ':' is the answer for a value that is missing */
	strcpy(built.letters, "+:");
#define OPTION(id, letters, names, argument, locks, action, help) \
	add_letters(letters, argument); \
	add_names(OPT_##id, names, argument);
#include "cli/options.def"
	built.table.names = built.table.all;
#define PREFIXES(id, words, argument) add_names(OPT_##id, words, argument);
#include "cli/options.def"
	built.table.letters = built.letters;
	built.table.longs = built.longs;
	return &built.table;
}

enum option_id option_of(int answer)
{
	if (answer >= LONG_NAME)
		return (enum option_id)(answer - LONG_NAME);
#define OPTION(id, letters, names, argument, locks, action, help) \
	if (strchr(letters, answer) != NULL) \
		return OPT_##id;
#include "cli/options.def"
	return OPTIONS;
}

static const char *spelled(const char *letters, const char *names)
{
	static char text[40];

	if (*letters != '\0')
		snprintf(text, sizeof text, "-%c", *letters);
	else
		snprintf(text, sizeof text, "--%.*s", (int)strcspn(names, " "), names);
	return text;
}

const char *option_name(enum option_id id)
{
	switch (id) {
#define OPTION(id, letters, names, argument, locks, action, help) \
	case OPT_##id: \
		return spelled(letters, names);
#include "cli/options.def"
	case OPTIONS:
		break;
	}
	return "";
}

bool option_known(const char *word)
{
	const struct option_table *table = option_table();
	const size_t length = strcspn(word, "=");

	if (word[1] == '\0')
		return false;
	if (word[1] != '-')
		return word[2] == '\0' && option_of(word[1]) != OPTIONS;
	for (unsigned i = 0; i < table->all; i++)
		if (strlen(table->longs[i].name) == length - 2 &&
		    strncmp(table->longs[i].name, word + 2, length - 2) == 0)
			return true;
	return false;
}
