/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/reading.h"
#include "lock/method.h"
#include "methods/server/locksmith.h"
#include "report/error.h"
#include "report/text.h"

/* ---- their names ---- */

/* Prefixes that flock(1) accepts for one of its options.  Here other options begin so, too; and
 * musl's getopt_long() calls a prefix of two spellings of one option ambiguous. */
#define FLOCKS_OWN(name, has_argument, option) \
	{ \
		name, has_argument, NULL, option \
	}

const struct option usage_options[] = {
    {"close", no_argument, NULL, 'o'},
    {"command", no_argument, NULL, 'c'},
    {"conflict-exit-code", required_argument, NULL, 'E'},
    {"die-with-parent", no_argument, NULL, OPT_DIE_WITH_PARENT},
    {"exclusive", no_argument, NULL, 'x'},
    {"fcntl", no_argument, NULL, OPT_FCNTL},
    {"fd", required_argument, NULL, OPT_FD},
    {"file", required_argument, NULL, 'f'},
    {"first", no_argument, NULL, OPT_FIRST},
    {"help", no_argument, NULL, 'h'},
    {"hold", optional_argument, NULL, OPT_HOLD},
    {"init", no_argument, NULL, OPT_INIT},
    {"json", no_argument, NULL, OPT_JSON},
    {"kill-after", required_argument, NULL, OPT_KILL_AFTER},
    {"length", required_argument, NULL, OPT_LENGTH},
    {"log", required_argument, NULL, OPT_LOG},
    {"method", required_argument, NULL, 'm'},
    {"min-hold", required_argument, NULL, OPT_MIN_HOLD},
    {"mode", required_argument, NULL, OPT_MODE},
    {"name", required_argument, NULL, OPT_NAME},
    {"nb", no_argument, NULL, 'n'},
    {"nested", no_argument, NULL, OPT_NESTED},
    {"no-fork", no_argument, NULL, 'F'},
    {"nonblock", no_argument, NULL, 'n'},
    {"nonblocking", no_argument, NULL, 'n'},
    {"older", required_argument, NULL, OPT_OLDER},
    {"on-lost", required_argument, NULL, OPT_ON_LOST},
    {"queue-max", required_argument, NULL, OPT_QUEUE_MAX},
    {"quiet", no_argument, NULL, 'q'},
    {"replace", optional_argument, NULL, OPT_REPLACE},
    {"rm", no_argument, NULL, OPT_RM},
    {"run-timeout", required_argument, NULL, OPT_RUN_TIMEOUT},
    {"shared", no_argument, NULL, 's'},
    {"signal", required_argument, NULL, OPT_SIGNAL},
    {"slots", required_argument, NULL, 'j'},
    {"stale", required_argument, NULL, OPT_STALE},
    {"start", required_argument, NULL, OPT_START},
    {"status-fd", required_argument, NULL, OPT_STATUS_FD},
    {"take", required_argument, NULL, OPT_TAKE},
    {"timeout", required_argument, NULL, 'w'},
    {"toggle", optional_argument, NULL, OPT_TOGGLE},
    {"ttl", required_argument, NULL, OPT_TTL},
    {"unlock", no_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"wait", required_argument, NULL, 'w'},
    {"who", no_argument, NULL, OPT_WHO},
    FLOCKS_OWN("h", no_argument, 'h'),
    FLOCKS_OWN("non", no_argument, 'n'),
    FLOCKS_OWN("nonb", no_argument, 'n'),
    FLOCKS_OWN("nonbl", no_argument, 'n'),
    FLOCKS_OWN("nonblo", no_argument, 'n'),
    FLOCKS_OWN("nonbloc", no_argument, 'n'),
    FLOCKS_OWN("s", no_argument, 's'),
    FLOCKS_OWN("t", required_argument, 'w'),
    FLOCKS_OWN("u", no_argument, 'u'),
    FLOCKS_OWN("un", no_argument, 'u'),
    FLOCKS_OWN("w", required_argument, 'w'),
    {NULL, 0, NULL, 0},
};

const char usage_letters[] = "+:cef:hj:m:noqsuvw:xE:FV";

/* "; did you mean --wait?" for WORD, of LENGTH bytes, without its dashes; or "". */
static const char *option_hint(const char *word, size_t length)
{
	static struct similar similar;
	static const char *const elsewhere[][2] = {
	    /* what other tools call it */
	    {"no-wait", "; did you mean --nonblock?"},
	    {"nowait", "; did you mean --nonblock?"},
	    {"check", "; semlock-check(1) is a program of its own"},
	};

	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strlen(elsewhere[i][0]) == length &&
		    strncmp(word, elsewhere[i][0], length) == 0)
			return elsewhere[i][1];
	similar = (struct similar){.word = word, .length = length};
	for (const struct option *option = usage_options; option->name[1] != '\0'; option++)
		similar_try(&similar, option->name);
	return similar_hint(&similar, "--", "");
}

bool usage_knows(const char *word)
{
	size_t length = strcspn(word, "=");

	if (word[1] == '\0')
		return false;
	if (word[1] != '-')
		return word[2] == '\0' && strchr(usage_letters, word[1]) != NULL;
	for (const struct option *option = usage_options; option->name != NULL; option++)
		if (strlen(option->name) == length - 2 &&
		    strncmp(option->name, word + 2, length - 2) == 0)
			return true;
	return false;
}

noreturn void usage_refuse(int argc, char **argv)
{
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
	const char *bundle =
	    optind < argc && optind > 0 && argv[optind][0] == '-' ? argv[optind] : word;
	const size_t length = strlen(word) > 2 ? strcspn(word + 2, "=") : 0;
	char like[256] = ""; /* the options that begin so: "--nested or --no-fork" */

	/* In a bundle of letters, WORD is the one before it.  With --shared=yes, optopt is a known
	 * letter. */
	if ((optopt > 0 && optopt < 256 && strchr(usage_letters, optopt) == NULL) ||
	    strncmp(word, "--", 2) != 0) {
		if (bundle[0] != '-' || bundle[1] == '-' || bundle[2] == '\0' ||
		    strchr(bundle, optopt) == NULL)
			bundle = word;
		die(EXIT_USAGE, "-%c: there is no such option%s (see --help)", optopt,
		    bundle[0] == '-' && strlen(bundle) > 3
			? option_hint(bundle + 1, strcspn(bundle + 1, "="))
			: "");
	}
	for (const struct option *option = usage_options; option->name[1] != '\0'; option++)
		if (strncmp(option->name, word + 2, length) == 0)
			snprintf(like + strlen(like), sizeof like - strlen(like),
			    *like == '\0' ? "--%s" : " or --%s", option->name);
	if (strchr(like, ' ') != NULL)
		die(EXIT_USAGE, "%s: could be %s", word, like);
	if (*like != '\0')
		die(EXIT_USAGE, "%s: this option takes no value", word);
	die(EXIT_USAGE, "%s: there is no such option%s (see --help)", word,
	    option_hint(word + 2, length));
}

/* ---- the help ---- */

static const char help[] =
    "Usage: semlock [OPTION...] LOCK COMMAND [ARG...]\n"
    "       semlock [OPTION...] LOCK -c 'SHELL COMMAND'\n"
    "       semlock [OPTION...] FD\n"
    "       semlock --hold [OPTION...] LOCK\n"
    "       semlock --who [--json] [LOCK...]\n"
    "Run COMMAND while holding LOCK: a file, a directory, or a URL.  Or lock FD, an\n"
    "open descriptor of the calling shell.\n"
    "How long to wait:\n"
    "  -n, --nb, --nonblock, --nonblocking  do not wait: fail at once\n"
    "  -w, --wait, --timeout=SECS  wait at most SECS: 10, .5, 1e1, 500ms, 10s, 2m, 1h\n"
    "      --queue-max=N      wait only if fewer than N others wait\n"
    "      --first            wait before all others; it can starve them\n"
    "  -E, --conflict-exit-code=N  exit status if the lock is busy (default: 1)\n"
    "      --replace[=SIG]    stop the holder (default: TERM), and take its place\n"
    "      --older=SECS       with --replace: only a holder of that age\n"
    "      --toggle[=SIG]     if held, stop the holder, and do not run COMMAND\n"
    "Which lock:\n"
    "  -x, -e, --exclusive    exclude all other holders (default)\n"
    "  -s, --shared           admit other shared holders\n"
    "  -j, --slots=N          admit N holders; SEMLOCK_SLOT numbers them from 0\n"
    "      --take=K           with -j: K slots; SEMLOCK_SLOT lists them\n"
    "  -f, --file=LOCK        take this lock as well: all or none, without deadlock\n"
    "      --name=NAME        in place of LOCK: the lock NAME in your own directory\n"
    "      --fd=N             in place of LOCK: the open descriptor N\n"
    "      --nested           run COMMAND under the lock of an outer semlock\n"
    "      --mode=OCTAL       permissions of a lock file that is created\n"
    "      --rm               remove the lock file at the end, if it is not in use\n"
    "How to lock:\n"
    "  -m, --method=METHOD    one of those below (default: flock)\n"
    "      --fcntl            the same as -m ofd\n"
    "      --start=BYTE, --length=BYTES  a part of the file (length 0: to its end)\n"
    "      --init             with rename: create the lock file, if there is none\n"
    "      --stale=SECS       take over from a holder without a sign of life for SECS\n"
    "      --ttl=SECS         lease of a lock on a server\n"
    "How to run COMMAND:\n"
    "  -c, --command STRING   after LOCK: run STRING with $SHELL, or /bin/sh\n"
    "  -o, --close            do not let COMMAND inherit the lock\n"
    "  -F, --no-fork          become COMMAND: no second process\n"
    "      --die-with-parent  end with the process that started semlock\n"
    "      --min-hold=SECS    keep LOCK for SECS, also if COMMAND ends sooner\n"
    "      --run-timeout=SECS  end COMMAND after SECS; exit status 124\n"
    "      --signal=SIG, --kill-after=SECS  by SIG (TERM); by KILL, SECS later\n"
    "      --on-lost=WHAT     if a lock made of files is removed: warn, or signal SIG\n"
    "Without COMMAND:\n"
    "      --hold[=PID]       print OK; hold LOCK until end of input, or of PID\n"
    "  -u, --unlock           unlock FD\n"
    "      --who              print holders and waiters of LOCK, or of all locks that\n"
    "                         are open here; with --json, as JSON\n"
    "What is said:\n"
    "  -q, -v, --quiet, --verbose  nothing about a busy lock; what happens\n"
    "      --status-fd=N      a line for each event, on descriptor N\n"
    "      --log=FILE         a line of JSON for this run, at the end of FILE\n"
    "  -h, -V, --help, --version  this text; the version\n";

static const char epilogue[] =
    "Exit status: COMMAND's own, 128+n if signal n ended it; 1 (-E): busy; 124: run\n"
    "timeout; 126, 127: COMMAND cannot be run; 64 usage, 65 not lockable, 66 cannot\n"
    "open, 69 unavailable, 70 internal, 71 system, 73 cannot create, 76 lost, 77 not\n"
    "permitted.  More, with examples: semlock(1).\n";

void usage_help(void)
{
	struct similar nothing = {.word = ""};
	const struct method *method;
	bool of_files = false;
	char names[400];

	fputs(help, stdout);
	/* The shells' completions read what is printed from here on. */
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
