#include <config.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "exitcode.h"
#include "options.h"
#include "report.h"
#include "rules.h"
#include "usage.h"
#include "values.h"

enum { OPT_FCNTL = 256, OPT_FD, OPT_INIT, OPT_LENGTH, OPT_MODE, OPT_ON_LOST, OPT_RM, OPT_STALE, OPT_START, OPT_UNFAIR };

static const struct option long_options[] = {
    {"close", no_argument, NULL, 'o'},
    {"command", no_argument, NULL, 'c'},
    {"conflict-exit-code", required_argument, NULL, 'E'},
    {"exclusive", no_argument, NULL, 'x'},
    {"fcntl", no_argument, NULL, OPT_FCNTL},
    {"fd", required_argument, NULL, OPT_FD},
    {"file", required_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {"init", no_argument, NULL, OPT_INIT},
    {"length", required_argument, NULL, OPT_LENGTH},
    {"method", required_argument, NULL, 'm'},
    {"mode", required_argument, NULL, OPT_MODE},
    {"nb", no_argument, NULL, 'n'},
    {"no-fork", no_argument, NULL, 'F'},
    {"nonblock", no_argument, NULL, 'n'},
    {"nonblocking", no_argument, NULL, 'n'},
    {"on-lost", required_argument, NULL, OPT_ON_LOST},
    {"quiet", no_argument, NULL, 'q'},
    {"rm", no_argument, NULL, OPT_RM},
    {"shared", no_argument, NULL, 's'},
    {"slots", required_argument, NULL, 'j'},
    {"stale", required_argument, NULL, OPT_STALE},
    {"start", required_argument, NULL, OPT_START},
    {"timeout", required_argument, NULL, 'w'},
    {"unfair", no_argument, NULL, OPT_UNFAIR},
    {"unlock", no_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"wait", required_argument, NULL, 'w'},
    {NULL, 0, NULL, 0},
};

/* Room for LOCK itself, and for one -f in every two words. */
static void make_room(struct options *options, int argc)
{
	options->locks = calloc((size_t)argc + 1, sizeof *options->locks);
	if (options->locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	options->nlocks = 1;
}

static noreturn void refuse_option(int argc, char **argv)
{
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";

	if (optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0)
		die(EXIT_USAGE, "-%c: there is no such option (see semlock --help)", optopt);
	die(EXIT_USAGE, "%s: there is no such option, or it is ambiguous (see semlock --help)", word);
}

/* One option.  Returns false when what follows is the command. */
static bool take_option(struct options *options, struct reading *reading, int option)
{
	switch (option) {
	case 's':
		reading->mode = SHARED;
		reading->mode_given = true;
		options->unlock = false;
		break;
	case 'e':
	case 'x':
		reading->mode = EXCLUSIVE;
		reading->mode_given = true;
		options->unlock = false;
		break;
	case 'u':
		options->unlock = true;
		break;
	case 'n':
		options->nonblocking = true;
		break;
	case 'w':
		options->wait = value_wait(optarg, options->as_flock ? EXIT_SYSTEM : EXIT_USAGE);
		break;
	case 'E':
		options->busy_status = value_status(optarg);
		break;
	case 'o':
		options->close_fd = true;
		break;
	case 'F':
		options->become = true;
		break;
	case 'f':
		options->locks[options->nlocks++] = (struct wanted){optarg, -1, reading->mode};
		break;
	case 'j':
		options->slots = value_slots(optarg);
		break;
	case 'm':
		options->method = value_method(optarg);
		reading->method_named = true;
		break;
	case 'q':
		options->quiet = true;
		break;
	case 'v':
		options->verbose = true;
		break;
	case OPT_FCNTL:
		reading->fcntl_asked = true;
		break;
	case OPT_START:
		options->range.start = value_size("--start", optarg);
		reading->range_asked = true;
		break;
	case OPT_LENGTH:
		options->range.length = value_size("--length", optarg);
		reading->range_asked = true;
		break;
	case OPT_MODE:
		options->create_mode = value_mode(optarg);
		options->exact_mode = true;
		break;
	case OPT_RM:
		options->remove = true;
		break;
	case OPT_INIT:
		options->init = true;
		break;
	case OPT_ON_LOST:
		options->on_lost = value_on_lost(optarg);
		break;
	case OPT_STALE:
		options->stale = value_time("--stale", optarg);
		break;
	case OPT_UNFAIR:
		options->unfair = true;
		break;
	case OPT_FD:
		reading->fd = value_fd(optarg);
		options->label = optarg;
		reading->fd_given = true;
		break;
	case 'c':
		if (!reading->fd_given)
			die(EXIT_USAGE, "-c stands behind LOCK: semlock LOCK -c 'SHELL COMMAND'");
		reading->shell = true;
		return false;
	case 'h':
		usage_help();
	case 'V':
		usage_version(options->as_flock);
	}
	return true;
}

static void read_options(struct options *options, struct reading *reading, int argc, char **argv)
{
	int option;

	opterr = 0;
	do {
		option = getopt_long(argc, argv, "+:cef:hj:m:noqsuvw:xE:FV", long_options, NULL);
		if (option == ':')
			die(EXIT_USAGE, "%s: an argument is missing", argv[optind - 1]);
		if (option == '?')
			refuse_option(argc, argv);
	} while (option >= 0 && take_option(options, reading, option));
}

static char **shell_command(char **words)
{
	static char *argv[4];
	static char dash_c[] = "-c", sh[] = "/bin/sh";
	char *shell = getenv("SHELL");

	if (words[0] == NULL || words[1] != NULL)
		die(EXIT_USAGE, "-c takes exactly one string, the shell command");
	argv[0] = shell != NULL && *shell != '\0' ? shell : sh;
	argv[1] = dash_c;
	argv[2] = words[0];
	return argv;
}

/* What stands behind the options: LOCK and a command, or FD alone; behind --fd, a command. */
static void read_operands(struct options *options, struct reading *reading, char **words)
{
	struct wanted *first = &options->locks[0];
	bool is_shell = reading->shell;

	*first = (struct wanted){.fd = reading->fd, .mode = reading->mode};
	if (!reading->fd_given) {
		if (words[0] == NULL)
			die(EXIT_USAGE, "what to lock is missing (see semlock --help)");
		options->label = words[0];
		if (words[1] == NULL) {
			first->fd = value_fd(words[0]);
			return;
		}
		first->name = *words++;
	}
	if (!is_shell && words[0] != NULL &&
	    (strcmp(words[0], "-c") == 0 || strcmp(words[0], "--command") == 0)) {
		is_shell = true;
		words++;
	} else if (!is_shell && words[0] != NULL && words[1] != NULL && strcmp(words[0], "--") == 0) {
		words++;
	}
	if (is_shell)
		options->command = shell_command(words);
	else if (words[0] != NULL)
		options->command = words;
}

static bool called_flock(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash == NULL ? path : slash + 1, "flock") == 0;
}

void options_parse(struct options *options, int argc, char **argv)
{
	struct reading reading = {.mode = EXCLUSIVE, .fd = -1};

	*options = (struct options){
	    .as_flock = argc > 0 && called_flock(argv[0]),
	    .method = method_nth(0),
	    .wait = -1,
	    .busy_status = EXIT_BUSY,
	    .create_mode = 0666,
	};
	if (options->as_flock)
		report_as("flock");
	make_room(options, argc);
	read_options(options, &reading, argc, argv);
	read_operands(options, &reading, argv + optind);
	rules_apply(options, &reading);
	if (options->slots > 0 && (options->method->can & CAN_RANGE) == 0)
		options->locks[0].mode = SHARED; /* the gate */
}
