/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "cli/option_table.h"
#include "cli/options.h"
#include "cli/unknown_option.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "report/error.h"
#include "report/status_fd.h"
#include "sys/ancestors.h"

/* ---- actions of options.def that are longer than one line ---- */

/* If several of -s, -x and -u are given, the last one wins. */
static void read_mode(struct request *request, struct reading *reading, enum lock_mode mode)
{
	reading->mode = mode;
	request->unlock = false;
	reading->given &= ~OPT(UNLOCK);
}

/* If both --replace and --toggle are given, the last one wins. */
static void read_preempt(struct request *request, struct reading *reading, enum option_id id,
    const char *name)
{
	request->preempt = id == OPT_TOGGLE ? PREEMPT_TOGGLE : PREEMPT_REPLACE;
	reading->has_signal = optarg != NULL;
	request->preempt_signal = optarg == NULL ? SIGTERM : value_signal(name, optarg);
	reading->given &= ~(id == OPT_TOGGLE ? OPT(REPLACE) : OPT(TOGGLE));
}

static void read_further_lock(struct request *request, const struct reading *reading)
{
	request->locks[request->nlocks++] =
	    (struct lock_spec){.name = optarg, .fd = -1, .mode = reading->mode};
}

static void read_fd(struct request *request, struct reading *reading, const char *name)
{
	reading->fd = value_fd(name, optarg);
	request->label = optarg;
}

static void read_create_mode(struct request *request)
{
	request->spec.create_mode = value_mode(optarg);
	request->spec.exact_mode = true;
}

static void read_signal(struct request *request, const char *name)
{
	request->signal = value_signal(name, optarg);
	request->signal_text = optarg;
}

/* optarg, the argument of option NAME, is the name of an ancestor.  Returns the PID of the nearest
 * ancestor with that name; if there is none, ends the program. */
static pid_t read_ancestor(const char *name)
{
	const pid_t pid = ancestor_named(optarg);
	char all[400];

	if (pid > 0)
		return pid;
	ancestors_text(all, sizeof all);
	die(EXIT_USAGE, "%s=%s: no ancestor of this process has that name (ancestors: %s)", name,
	    optarg, all);
}

/* The process that optarg, the argument of option NAME, means: a PID, or an ancestor's name.
 * Returns its PID, or 0 if the option has no argument. */
static pid_t read_process(const char *name)
{
	if (optarg == NULL)
		return 0;
	if (strcmp(optarg, "0") == 0)
		die(EXIT_USAGE,
		    "%s=0: the parent is outside this container and has no number in it "
		    "(under docker exec, $PPID is 0): name another process, or omit =0",
		    name);
	if (optarg[strspn(optarg, " \t+0123456789")] != '\0')
		return read_ancestor(name);
	return (pid_t)value_number(name, optarg, "process ID", 1, INT_MAX);
}

static void read_hold(struct request *request, const char *name)
{
	request->hold = true;
	request->owner = read_process(name);
}

static void read_die_with_parent(struct request *request, const char *name)
{
	request->dies_with_parent = true;
	request->parent = read_process(name);
}

static void read_status_fd(const char *name)
{
	if (status_fd_use(value_fd(name, optarg)) != 0)
		die(EXIT_USAGE, "%s %s: this descriptor is not open", name, optarg);
}

#define NOTED ((void)0) /* no action: reading->given has the option */

/* Option ID was given, with the value in optarg. */
static void read_option(struct request *request, struct reading *reading, enum option_id id)
{
	const char *name = option_name(id);

	reading->given |= OPTION_BIT(id);
	switch (id) {
#define OPTION(id, letters, names, argument, locks, action, help) \
	case OPT_##id: \
		action; /* NOLINT(bugprone-macro-parentheses): a statement */ \
		break;
#include "cli/options.def"
	case OPTIONS:
		break;
	}
}

/* Refuse "-w=1": getopt(3) takes "=1" for the argument, which nobody means. */
static void check_value(enum option_id id, const char *word)
{
	const char *names = option_rows[id].names;

	if (optarg != NULL && *optarg == '=' && optarg != word && word[1] != '-')
		die(EXIT_USAGE, "%s%s: write %s %s or --%.*s%s", option_name(id), optarg,
		    option_name(id), optarg + 1, (int)strcspn(names, " "), names, optarg);
}

/* getopt_long(3) has taken a part of WORD, or all of it, for an option.  Refuse WORD if it looks
 * like something else.  Invoked as flock, refuse nothing that flock(1) accepts. */
static void check_word(const struct request *request, const struct option_table *table, int answer,
    int longs, const char *word)
{
	const enum option_id id = option_of(answer);

	if (request->as_flock)
		return;
	if (strncmp(word, "--", 2) == 0)
		unknown_option_refuse_abbreviation(word, table->longs[longs].name);
	else if (*word == '-' && (id == OPT_HELP || id == OPT_VERSION))
		unknown_option_check_bundle(word);
}

/* ---- all options ---- */

int options_read(struct request *request, struct reading *reading, int argc, char **argv)
{
	struct option_table table;
	const char *word; /* the one that getopt_long(3) looks at */
	int answer, longs = 0;

	if (argc < 2 || *argv[1] != '-')
		return argc < 1 ? 0 : 1;
	option_table_fill(&table);
	opterr = 0;
	for (;;) {
		word = optind < argc ? argv[optind] : "";
		answer = getopt_long(argc, argv, table.letters, table.longs, &longs);
		if (answer < 0)
			break;
		if (answer == ':')
			die(EXIT_USAGE, "%s: option requires an argument (see --help)",
			    /* musl's optind can be past the end */
			    argv[(optind < argc ? optind : argc) - 1]);
		if (answer == '?')
			unknown_option_refuse(&table, argc, argv);
		check_word(request, &table, answer, longs, word);
		check_value(option_of(answer), argv[optind - 1]);
		read_option(request, reading, option_of(answer));
		/* the next word is the shell command, unless LOCK is still missing */
		if (option_of(answer) == OPT_COMMAND && given(reading, OPT(FD) | OPT(NAME)))
			break;
	}
	if (given(reading, OPT(COMMAND)) && !given(reading, OPT(FD) | OPT(NAME)))
		die(EXIT_USAGE, "-c must follow LOCK: LOCK -c 'SHELL COMMAND'");
	return optind;
}
