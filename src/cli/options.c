#include <config.h>

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/reading.h"
#include "cli/values.h"
#include "methods/kernel/kernel_methods.h"
#include "report/error.h"
#include "report/exitcode.h"
#include "report/status_fd.h"
#include "sys/memory.h"

/* Beginnings that flock(1) takes for one of its options.  Here other options begin so, too; and to
 * musl's getopt_long(), two spellings of one option are ambiguous. */
#define FLOCKS_OWN(name, has_argument, option) {name, has_argument, NULL, option}

static const struct option long_options[] = {
    {"check", no_argument, NULL, OPT_CHECK},
    {"close", no_argument, NULL, 'o'},
    {"command", no_argument, NULL, 'c'},
    {"conflict-exit-code", required_argument, NULL, 'E'},
    {"exclusive", no_argument, NULL, 'x'},
    {"fcntl", no_argument, NULL, OPT_FCNTL},
    {"fd", required_argument, NULL, OPT_FD},
    {"file", required_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {"hold", optional_argument, NULL, OPT_HOLD},
    {"init", no_argument, NULL, OPT_INIT},
    {"json", no_argument, NULL, OPT_JSON},
    {"kill-after", required_argument, NULL, OPT_KILL_AFTER},
    {"length", required_argument, NULL, OPT_LENGTH},
    {"method", required_argument, NULL, 'm'},
    {"min-hold", required_argument, NULL, OPT_MIN_HOLD},
    {"mode", required_argument, NULL, OPT_MODE},
    {"name", required_argument, NULL, OPT_NAME},
    {"nb", no_argument, NULL, 'n'},
    {"nested", no_argument, NULL, OPT_NESTED},
    {"no-fork", no_argument, NULL, 'F'},
    {"nonblock", no_argument, NULL, 'n'},
    {"nonblocking", no_argument, NULL, 'n'},
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

static const char letters[] = "+:cef:hj:m:noqsuvw:xE:FV";

/* Put into TEXT the options that begin with the LENGTH bytes at WORD: "--nested or --no-fork". */
static void list_like(const char *word, size_t length, char *text, size_t size)
{
	*text = '\0';
	for (const struct option *option = long_options; option->name[1] != '\0'; option++)
		if (strncmp(option->name, word, length) == 0)
			snprintf(text + strlen(text), size - strlen(text),
			    *text == '\0' ? "--%s" : " or --%s", option->name);
}

static noreturn void refuse_option(int argc, char **argv)
{
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
	char like[256];

	/* In a bundle of letters, WORD is the one before it.  With --shared=yes, optopt is a known letter. */
	if ((optopt > 0 && optopt < 256 && strchr(letters, optopt) == NULL) || strncmp(word, "--", 2) != 0)
		die(EXIT_USAGE, "-%c: there is no such option (see --help)", optopt);
	list_like(word + 2, strcspn(word + 2, "="), like, sizeof like);
	if (strchr(like, ' ') != NULL)
		die(EXIT_USAGE, "%s: could be %s", word, like);
	if (*like != '\0')
		die(EXIT_USAGE, "%s: this option takes no value", word);
	die(EXIT_USAGE, "%s: there is no such option (see --help)", word);
}

/* The options that do nothing but switch on a member of struct request. */
static const struct {
	int option;
	size_t member;
} switches[] = {
    {'u', offsetof(struct request, unlock)},
    {'n', offsetof(struct request, nonblocking)},
    {'o', offsetof(struct request, close_fd)},
    {'F', offsetof(struct request, become)},
    {'q', offsetof(struct request, quiet)},
    {'v', offsetof(struct request, verbose)},
    {OPT_RM, offsetof(struct request, spec.to_be_removed)},
    {OPT_INIT, offsetof(struct request, spec.init)},
    {OPT_NESTED, offsetof(struct request, nested)},
    {OPT_CHECK, offsetof(struct request, check)},
    {OPT_WHO, offsetof(struct request, who)},
    {OPT_JSON, offsetof(struct request, json)},
};

/* Returns false when the next word is the shell command. */
static bool take_option(struct request *request, struct reading *reading, int option)
{
	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
		if (switches[i].option == option)
			*(bool *)((char *)request + switches[i].member) = true;
	switch (option) {
	case 's':
	case 'e':
	case 'x':
		reading->mode = option == 's' ? SHARED : EXCLUSIVE;
		reading->mode_given = true;
		request->unlock = false;
		break;
	case 'w':
		request->wait = value_wait(optarg, request->as_flock ? EXIT_SYSTEM : EXIT_USAGE);
		break;
	case 'E':
		request->busy_status = (int)value_number("-E", optarg, "an exit status", 0, 255);
		break;
	case 'f':
		request->locks[request->nlocks++] = (struct lock_spec){.name = optarg, .fd = -1, .mode = reading->mode};
		break;
	case 'j':
		request->spec.slots = (unsigned)value_number("-j", optarg, "a number of slots", 1, SLOTS_MOST);
		break;
	case 'm':
		request->spec.method = value_method(optarg);
		reading->method_named = true;
		break;
	case OPT_FCNTL:
		reading->fcntl_asked = true;
		break;
	case OPT_START:
		request->spec.range.start = value_size("--start", optarg, BYTES_OF_DATA - 1);
		reading->range_asked = true;
		break;
	case OPT_LENGTH:
		request->spec.range.length = value_size("--length", optarg, INT64_MAX);
		reading->range_asked = true;
		break;
	case OPT_MIN_HOLD:
		request->min_hold = value_duration("--min-hold", optarg, 1);
		break;
	case OPT_MODE:
		request->spec.create_mode = value_mode(optarg);
		request->spec.exact_mode = true;
		break;
	case OPT_HOLD:
		request->hold = true;
		request->owner = optarg == NULL ? 0
		    : (pid_t)value_number("--hold", optarg, "a process number", 1, INT_MAX);
		break;
	case OPT_ON_LOST:
		request->on_lost = value_on_lost(optarg);
		break;
	case OPT_STALE:
		request->spec.stale = value_duration("--stale", optarg, 1);
		break;
	case OPT_TTL:
		request->spec.ttl = value_duration("--ttl", optarg, 1);
		break;
	case OPT_NAME:
		reading->name = optarg;
		break;
	case OPT_STATUS_FD:
		if (status_fd_use(value_fd("--status-fd", optarg)) != 0)
			die(EXIT_USAGE, "--status-fd %s: this descriptor is not open", optarg);
		break;
	case OPT_QUEUE_MAX:
		request->queue_max = (int)value_number("--queue-max", optarg, "a number of waiters", 0, INT_MAX);
		break;
	case OPT_REPLACE:
	case OPT_TOGGLE:
		request->preempt = option == OPT_REPLACE ? PREEMPT_REPLACE : PREEMPT_TOGGLE;
		request->preempt_signal = optarg == NULL ? SIGTERM
		    : value_signal(option == OPT_REPLACE ? "--replace" : "--toggle", optarg);
		break;
	case OPT_RUN_TIMEOUT:
		request->run_timeout = value_duration("--run-timeout", optarg, 0);
		reading->limited = true;
		break;
	case OPT_SIGNAL:
		request->signal = value_signal("--signal", optarg);
		break;
	case OPT_KILL_AFTER:
		request->kill_after = value_duration("--kill-after", optarg, 0);
		reading->kills = true;
		break;
	case OPT_FD:
		reading->fd = value_fd("--fd", optarg);
		request->label = optarg;
		reading->fd_given = true;
		break;
	case 'c':
		if (!reading->fd_given && reading->name == NULL)
			die(EXIT_USAGE, "-c stands behind LOCK: LOCK -c 'SHELL COMMAND'");
		reading->shell = true;
		return false;
	case 'h':
		usage_help();
	case 'V':
		usage_version(request->as_flock);
	}
	return true;
}

/* Does OPTION go with --who and --check? */
static bool only_looks(int option)
{
	return option < 0 || option == OPT_WHO || option == OPT_CHECK || option == OPT_JSON || option == 'm' ||
	       option == OPT_FCNTL || option == OPT_NAME || option == 'h' || option == 'V';
}

int options_next(int argc, char **argv)
{
	opterr = 0;
	return getopt_long(argc, argv, letters, long_options, NULL);
}

void read_options(struct request *request, struct reading *reading, int argc, char **argv)
{
	int option;

	do {
		option = options_next(argc, argv);
		if (option == ':')
			die(EXIT_USAGE, "%s: its value is missing (see --help)",
			    argv[(optind < argc ? optind : argc) - 1]); /* musl's goes past the end */
		if (option == '?')
			refuse_option(argc, argv);
		reading->acts = reading->acts || !only_looks(option);
	} while (option >= 0 && take_option(request, reading, option));
}
