/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/option_table.h"
#include "cli/other_semlock.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/table.h"

/* Returns false if the option, or the method that it names, is unknown. */
static bool read_option(enum option_id id, struct other_semlock *other, bool *lock_named)
{
	switch (id) {
	case OPT_FILE:
		other->several = true;
		break;
	case OPT_NOTE:
		other->note = optarg;
		break;
	case OPT_SHARED:
		other->mode = MODE_SHARED;
		break;
	case OPT_EXCLUSIVE:
		other->mode = MODE_EXCLUSIVE;
		break;
	case OPT_SLOTS:
		other->mode = MODE_SLOT;
		break;
	case OPT_METHOD:
		other->method = method_named(optarg);
		break;
	case OPT_START:
	case OPT_LENGTH:
		other->has_range = true;
		other->method = &method_ofd;
		break;
	case OPT_FCNTL:
		other->method = &method_ofd;
		break;
	case OPT_NAME:
	case OPT_FD:
		*lock_named = true;
		break;
	case OPTIONS: /* an unknown one */
		return false;
	default:
		break;
	}
	return other->method != NULL;
}

/* Returns the first word of the command, or NULL.  REST is what follows the options: LOCK, unless
 * LOCK_NAMED (--name or --fd); perhaps "--" or "-c"; then the command. */
static const char *command_of(char **rest, bool lock_named)
{
	if (!lock_named && rest[0] != NULL)
		rest++;
	if (rest[0] != NULL && (strcmp(rest[0], "--") == 0 || strcmp(rest[0], "-c") == 0 ||
				   strcmp(rest[0], "--command") == 0))
		rest++;
	return rest[0];
}

bool other_semlock_read(const char *words, size_t length, struct other_semlock *other)
{
	struct option_table table;
	char **argv = calloc(length + 2, sizeof *argv);
	bool valid = argv != NULL, lock_named = false;
	int argc = 0, answer = 0;

	*other = (struct other_semlock){.method = &method_flock, .mode = MODE_EXCLUSIVE};
	for (size_t i = 0; argv != NULL && i < length; i += strlen(words + i) + 1)
		argv[argc++] = (char *)(uintptr_t)(words + i);
	option_table_fill(&table);
	optind = 0; /* from the beginning */
	opterr = 0;
	while (valid && answer >= 0) {
		answer = getopt_long(argc, argv, table.letters, table.longs, NULL);
		if (answer >= 0)
			valid = read_option(option_of(answer), other, &lock_named);
		if (valid && answer >= 0 && lock_named && option_of(answer) == OPT_COMMAND)
			break; /* the next word is the shell command */
	}
	if (valid)
		other->command = command_of(argv + optind, lock_named);
	free(argv);
	return valid && !other->several;
}
