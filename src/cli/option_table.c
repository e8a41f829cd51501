/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "cli/option_table.h"
#include "report/error.h"

_Static_assert(OPTIONS <= 60, "a set has 64 bits, for the options and for enum fact");

/* getopt_long(3) answers with a letter, or for a long name with LONG_NAME + OPT_ID. */
enum { LONG_NAME = 256 };

#define FITS(text, member) (sizeof(text) <= sizeof option_rows->member)
#define OPTION(id, l, n, a, locks, action, h) \
	_Static_assert(FITS(l, letters) && FITS(n, names) && FITS(a, argument) && FITS(h, help), \
	    "struct option_row is too short for OPT_" #id);
#include "cli/options.def"

const struct option_row option_rows[OPTIONS] = {
#define OPTION(id, letters, names, argument, locks, action, help) \
	{letters, names, argument, locks, help},
#include "cli/options.def"
};

static int argument_kind(const struct option_row *row)
{
	if (row->argument[0] == '=')
		return required_argument;
	return row->argument[0] == '[' ? optional_argument : no_argument;
}

/* Add the names in NAMES, which blanks separate, to TABLE.  Split them by hand: strsep(3) here, or
 * printf(3) in option_name(), would touch several more pages of memory at each start. */
static void add_names(struct option_table *table, enum option_id id, const char *names)
{
	char *to = table->text + table->text_length;
	const char *begin = to;

	table->text_length += strlen(names) + 1;
	for (const char *from = names; from == names || from[-1] != '\0'; from++) {
		*to++ = *from == ' ' ? '\0' : *from;
		if (to[-1] != '\0')
			continue;
		if (table->all == OPTION_NAMES_MOST)
			die(EXIT_INTERNAL, "OPTION_NAMES_MOST is too small");
		table->longs[table->all++] = (struct option){begin, argument_kind(&option_rows[id]),
		    NULL, LONG_NAME + (int)id};
		begin = to;
	}
}

static void add_letters(struct option_table *table)
{
	char *to = table->letters;

	*to++ = '+'; /* stop at the first operand */
	*to++ = ':'; /* answer ':' if an argument is missing */
	for (unsigned id = 0; id < OPTIONS; id++) {
		for (const char *letter = option_rows[id].letters; *letter != '\0'; letter++) {
			*to++ = *letter;
			if (argument_kind(&option_rows[id]) == required_argument)
				*to++ = ':';
		}
	}
	*to = '\0';
}

void option_table_fill(struct option_table *table)
{
	table->all = 0;
	table->text_length = 0;
	add_letters(table);
	for (unsigned id = 0; id < OPTIONS; id++)
		add_names(table, id, option_rows[id].names);
	table->names = table->all;
#define PREFIXES(id, words) add_names(table, OPT_##id, words);
#include "cli/options.def"
	table->longs[table->all] = (struct option){NULL, 0, NULL, 0};
}

enum option_id option_of(int answer)
{
	if (answer >= LONG_NAME)
		return (enum option_id)(answer - LONG_NAME);
	for (unsigned id = 0; id < OPTIONS; id++)
		if (strchr(option_rows[id].letters, answer) != NULL)
			return id;
	return OPTIONS;
}

const char *option_name(enum option_id id)
{
	static char text[sizeof "--" + sizeof option_rows->names];
	const struct option_row *row = &option_rows[id];
	char *to = text;

	*to++ = '-';
	if (row->letters[0] != '\0') {
		*to++ = row->letters[0];
	} else {
		*to++ = '-';
		for (const char *from = row->names; *from != ' ' && *from != '\0'; from++)
			*to++ = *from;
	}
	*to = '\0';
	return text;
}

bool option_known(const char *word)
{
	const size_t length = strcspn(word, "=");
	struct option_table table;

	if (word[1] == '\0')
		return false;
	if (word[1] != '-')
		return word[2] == '\0' && option_of(word[1]) != OPTIONS;
	option_table_fill(&table);
	for (unsigned i = 0; i < table.all; i++)
		if (strlen(table.longs[i].name) == length - 2 &&
		    strncmp(table.longs[i].name, word + 2, length - 2) == 0)
			return true;
	return false;
}
