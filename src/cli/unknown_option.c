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

/* What to suggest for the options of other tools. */
enum hint {
	HINT_ACQUIRES,
	HINT_SHELL,
	HINT_CHECK,
	HINT_FOREGROUND,
	HINT_STATUS,
	HINT_HOLD,
	HINT_NAME,
	HINT_LOCK,
	HINT_NOTE,
	HINT_SLOTS,
	HINT_TAKE,
	HINT_RUN_TIMEOUT,
	HINT_TTL,
	HINT_NONBLOCK,
	HINT_WAIT,
	HINT_RETRY,
	HINT_FIRST,
	HINT_ONE_WAITER,
	HINT_SUPERSEDE,
	HINT_REPLACE,
	HINT_REPLACE_OR_RELEASE,
	HINT_RELEASE,
	HINT_WHO,
	HINT_QUIET,
	HINT_STATUS_OF_BUSY,
	HINT_SHARED,
	HINT_EXCLUSIVE,
	HINT_SERVER
};

static const char hints[][88] = {
    [HINT_ACQUIRES] =
	"; semlock LOCK COMMAND acquires it; over several calls: --hold=PID --detach LOCK",
    [HINT_SHELL] = "; the shell does that: semlock LOCK COMMAND &",
    [HINT_CHECK] = "; see semlock-check(1)",
    [HINT_FOREGROUND] = "; COMMAND already runs in the foreground",
    [HINT_STATUS] = "; COMMAND's exit status is always passed on",
    [HINT_HOLD] = "; over several calls: --hold=PID --detach LOCK, which PID's end releases",
    [HINT_NAME] = "; did you mean --name?",
    [HINT_LOCK] = "; LOCK is no option: semlock LOCK COMMAND",
    [HINT_NOTE] = "; did you mean --note?",
    [HINT_SLOTS] = "; did you mean --slots, or -j?",
    [HINT_TAKE] = "; did you mean --take?",
    [HINT_RUN_TIMEOUT] = "; did you mean --run-timeout?",
    [HINT_TTL] = "; did you mean --ttl?",
    [HINT_NONBLOCK] = "; did you mean --nonblock?",
    [HINT_WAIT] = "; did you mean --wait?",
    [HINT_RETRY] = "; a waiter is served in turn; did you mean --wait?",
    [HINT_FIRST] = "; did you mean --first?",
    [HINT_ONE_WAITER] = "; did you mean --queue-max=1, or --supersede?",
    [HINT_SUPERSEDE] = "; did you mean --supersede, or --replace?",
    [HINT_REPLACE] = "; did you mean --replace?",
    [HINT_REPLACE_OR_RELEASE] = "; did you mean --replace, or --release=ID?",
    [HINT_RELEASE] = "; did you mean --release=ID?",
    [HINT_WHO] = "; did you mean --who?",
    [HINT_QUIET] = "; did you mean --quiet?",
    [HINT_STATUS_OF_BUSY] = "; did you mean --conflict-exit-code, or -E?",
    [HINT_SHARED] = "; did you mean --shared?",
    [HINT_EXCLUSIVE] = "; did you mean --exclusive?",
    [HINT_SERVER] = "; the URL or the environment gives it: see semlock-servers(7)",
};

static const struct {
	char theirs[19];
	unsigned char hint;
} elsewhere[] = {
    {"acquire", HINT_ACQUIRES},
    {"acquire-timeout", HINT_WAIT},
    {"background", HINT_SHELL},
    {"bg", HINT_SHELL},
    {"break", HINT_REPLACE_OR_RELEASE},
    {"busy-status", HINT_STATUS_OF_BUSY},
    {"cancel", HINT_REPLACE_OR_RELEASE},
    {"cancel-in-progress", HINT_SUPERSEDE},
    {"cancel-previous", HINT_SUPERSEDE},
    {"check", HINT_CHECK},
    {"child-exit-code", HINT_STATUS},
    {"claim", HINT_HOLD},
    {"coalesce", HINT_ONE_WAITER},
    {"comment", HINT_NOTE},
    {"concurrency", HINT_SLOTS},
    {"count", HINT_SLOTS},
    {"daemon", HINT_SHELL},
    {"daemonize", HINT_SHELL},
    {"debounce", HINT_ONE_WAITER},
    {"description", HINT_NOTE},
    {"end", HINT_RELEASE},
    {"endpoint", HINT_SERVER},
    {"endpoint-url", HINT_SERVER},
    {"endpoints", HINT_SERVER},
    {"exit-code", HINT_STATUS_OF_BUSY},
    {"exit-status", HINT_STATUS_OF_BUSY},
    {"expire", HINT_TTL},
    {"expires", HINT_TTL},
    {"expiry", HINT_TTL},
    {"fail", HINT_NONBLOCK},
    {"fg", HINT_FOREGROUND},
    {"force", HINT_REPLACE},
    {"force-unlock", HINT_REPLACE_OR_RELEASE},
    {"foreground", HINT_FOREGROUND},
    {"fork", HINT_SHELL},
    {"free", HINT_RELEASE},
    {"get", HINT_ACQUIRES},
    {"gpus", HINT_TAKE},
    {"holder", HINT_WHO},
    {"holders", HINT_WHO},
    {"host", HINT_SERVER},
    {"id", HINT_NAME},
    {"info", HINT_WHO},
    {"jobs", HINT_SLOTS},
    {"key", HINT_NAME},
    {"kill", HINT_REPLACE_OR_RELEASE},
    {"latest", HINT_ONE_WAITER},
    {"lease", HINT_TTL},
    {"lease-id", HINT_HOLD},
    {"limit", HINT_SLOTS},
    {"list", HINT_WHO},
    {"lock", HINT_LOCK},
    {"lock-file", HINT_LOCK},
    {"lock-timeout", HINT_WAIT},
    {"lock-wait", HINT_WAIT},
    {"lockfile", HINT_LOCK},
    {"locks", HINT_WHO},
    {"ls", HINT_WHO},
    {"max-age", HINT_RUN_TIMEOUT},
    {"max-concurrent", HINT_SLOTS},
    {"max-hold", HINT_RUN_TIMEOUT},
    {"max-jobs", HINT_SLOTS},
    {"max-runtime", HINT_RUN_TIMEOUT},
    {"max-time", HINT_RUN_TIMEOUT},
    {"max-wait", HINT_WAIT},
    {"maxtime", HINT_RUN_TIMEOUT},
    {"message", HINT_NOTE},
    {"newest", HINT_ONE_WAITER},
    {"no-wait", HINT_NONBLOCK},
    {"nowait", HINT_NONBLOCK},
    {"owner", HINT_HOLD},
    {"owners", HINT_WHO},
    {"parallel", HINT_SLOTS},
    {"pass-exit-code", HINT_STATUS},
    {"password", HINT_SERVER},
    {"permits", HINT_SLOTS},
    {"pid-file", HINT_LOCK},
    {"pidfile", HINT_LOCK},
    {"priority", HINT_FIRST},
    {"quantity", HINT_TAKE},
    {"read", HINT_SHARED},
    {"reader", HINT_SHARED},
    {"reason", HINT_NOTE},
    {"region", HINT_SERVER},
    {"renew", HINT_HOLD},
    {"reserve", HINT_HOLD},
    {"retries", HINT_RETRY},
    {"retry", HINT_RETRY},
    {"retry-lock", HINT_RETRY},
    {"runtime-max", HINT_RUN_TIMEOUT},
    {"semaphore", HINT_SLOTS},
    {"session", HINT_HOLD},
    {"show", HINT_WHO},
    {"silent", HINT_QUIET},
    {"skip", HINT_NONBLOCK},
    {"sleep", HINT_RETRY},
    {"status", HINT_WHO},
    {"steal", HINT_REPLACE},
    {"take-lock", HINT_ACQUIRES},
    {"time-limit", HINT_RUN_TIMEOUT},
    {"try", HINT_NONBLOCK},
    {"try-once", HINT_NONBLOCK},
    {"unit", HINT_NAME},
    {"user", HINT_SERVER},
    {"wait-for-lock", HINT_WAIT},
    {"wait-timeout", HINT_WAIT},
    {"watch", HINT_WHO},
    {"weight", HINT_TAKE},
    {"write", HINT_EXCLUSIVE},
    {"writer", HINT_EXCLUSIVE},
};

/* Letters that are options of other tools, and what to suggest for each. */
static const struct {
	char theirs;
	char hint[56];
} letters_elsewhere[] = {
    {'N', "; did you mean -j, the number of slots?"},
    {'S', "; did you mean -j, the number of slots?"},
    {'W', "; did you mean -w?"},
    {'k', "; did you mean --kill-after?"},
    {'t', "; did you mean -w?"},
};

/* The suggestion for WORD, LENGTH bytes without its dashes, if it is an option of other tools; else
 * NULL. */
static const char *hint_elsewhere(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strlen(elsewhere[i].theirs) == length &&
		    strncmp(word, elsewhere[i].theirs, length) == 0)
			return hints[elsewhere[i].hint];
	return NULL;
}

static const char *hint_for_letter(int letter)
{
	for (size_t i = 0; i < sizeof letters_elsewhere / sizeof *letters_elsewhere; i++)
		if (letters_elsewhere[i].theirs == letter)
			return letters_elsewhere[i].hint;
	return "";
}

/* Returns a suggestion for WORD, LENGTH bytes without its dashes, such as "; did you mean --wait?";
 * or "".  The text may lie in SIMILAR. */
static const char *hint(const struct option_table *table, const char *word, size_t length,
    struct similar *similar)
{
	const char *theirs = hint_elsewhere(word, length);

	if (theirs != NULL)
		return theirs;
	*similar = (struct similar){.word = word, .length = length};
	for (unsigned i = 0; i < table->names; i++)
		similar_try(similar, table->longs[i].name);
	return similar_hint(similar, "--", "");
}

/* Put the options that begin with the LENGTH bytes at PREFIX into TEXT, in alphabetical order:
 * "--nested or --no-fork".  Returns how many there are. */
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

	/* getopt_long(3) moves optind past a bundle of letters only after the bundle's last letter.
	 * Until then, WORD is the word before the bundle.  For --shared=yes, where a known option
	 * takes no argument, getopt_long(3) sets optopt to what it returns for --shared. */
	if ((optopt > 0 && option_of(optopt) == OPTIONS) || strncmp(word, "--", 2) != 0) {
		if (strlen(bundle) < 3 || bundle[0] != '-' || bundle[1] == '-' ||
		    strchr(bundle, optopt) == NULL)
			bundle = word;
		die(EXIT_USAGE, "-%c: unknown option%s (see --help)", optopt,
		    bundle[0] == '-' && strlen(bundle) > 3
			? hint(table, bundle + 1, strcspn(bundle + 1, "="), &similar)
			: hint_for_letter(optopt));
	}
	count = list_options(table, word + 2, length, like, sizeof like);
	if (count > 1)
		die(EXIT_USAGE, "%s: ambiguous: %s", word, like);
	if (count == 1 && strncmp(word + 2, "unlock", length) == 0)
		die(EXIT_USAGE, "%s: option takes no argument; did you mean --release=ID?", word);
	if (count == 1)
		die(EXIT_USAGE, "%s: option takes no argument", word);
	die(EXIT_USAGE, "%s: unknown option%s (see --help)", word,
	    hint(table, word + 2, length, &similar));
}

void unknown_option_refuse_abbreviation(const char *word, const char *name)
{
	const size_t length = strcspn(word + 2, "=");
	const char *theirs = hint_elsewhere(word + 2, length);

	if (strlen(name) != length && theirs != NULL)
		die(EXIT_USAGE, "%s: unknown option%s (see --help)", word, theirs);
}

void unknown_option_check_bundle(const char *word)
{
	struct option_table table;
	struct similar similar;

	for (const char *letter = word + 1; *letter != '\0'; letter++) {
		if (option_of((unsigned char)*letter) != OPTIONS)
			continue;
		option_table_fill(&table);
		die(EXIT_USAGE, "%s: unknown option%s (see --help)", word,
		    hint(&table, word + 1, strcspn(word + 1, "="), &similar));
	}
}

const char *subcommand_hint(const char *word)
{
	static const char runs[] = "semlock LOCK COMMAND";
	static const char holds[] =
	    "semlock LOCK COMMAND; over several calls: semlock --hold=PID --detach LOCK";
	static const char releases[] = "semlock --release=ID LOCK; of a descriptor: semlock -u FD";
	static const char shows[] = "semlock --who [LOCK]";
	static const char explains[] = "semlock --help";
	static const struct {
		char word[8];
		const char *hint;
	} subcommands[] = {
	    {"acquire", holds},
	    {"exec", runs},
	    {"get", holds},
	    {"help", explains},
	    {"hold", holds},
	    {"info", shows},
	    {"list", shows},
	    {"lock", holds},
	    {"ls", shows},
	    {"release", releases},
	    {"run", runs},
	    {"show", shows},
	    {"status", shows},
	    {"unlock", releases},
	    {"version", explains},
	    {"wait", runs},
	    {"who", shows},
	};

	for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
		if (strcmp(word, subcommands[i].word) == 0)
			return subcommands[i].hint;
	return NULL;
}
