#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "exitcode.h"
#include "options.h"
#include "report.h"
#include "slots.h"
#include "usage.h"

enum { OPT_FCNTL = 256, OPT_FD, OPT_LENGTH, OPT_MODE, OPT_RM, OPT_START, OPT_UNFAIR };

static const struct option long_options[] = {
    {"close", no_argument, NULL, 'o'},
    {"command", no_argument, NULL, 'c'},
    {"conflict-exit-code", required_argument, NULL, 'E'},
    {"exclusive", no_argument, NULL, 'x'},
    {"fcntl", no_argument, NULL, OPT_FCNTL},
    {"fd", required_argument, NULL, OPT_FD},
    {"file", required_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {"length", required_argument, NULL, OPT_LENGTH},
    {"method", required_argument, NULL, 'm'},
    {"mode", required_argument, NULL, OPT_MODE},
    {"nb", no_argument, NULL, 'n'},
    {"no-fork", no_argument, NULL, 'F'},
    {"nonblock", no_argument, NULL, 'n'},
    {"nonblocking", no_argument, NULL, 'n'},
    {"quiet", no_argument, NULL, 'q'},
    {"rm", no_argument, NULL, OPT_RM},
    {"shared", no_argument, NULL, 's'},
    {"slots", required_argument, NULL, 'j'},
    {"start", required_argument, NULL, OPT_START},
    {"timeout", required_argument, NULL, 'w'},
    {"unfair", no_argument, NULL, OPT_UNFAIR},
    {"unlock", no_argument, NULL, 'u'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"wait", required_argument, NULL, 'w'},
    {NULL, 0, NULL, 0},
};

/* What has been read so far, and is not an option yet. */
struct reading {
	enum mode mode;
	bool method_named, fcntl_asked, range_asked, mode_given, fd_given, shell;
	int fd;
};

/* Decimal digits and nothing else, up to MOST; -1: it is not. */
static long number(const char *text, long most)
{
	long value;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	value = strtol(text, &end, 10);
	return *end == '\0' && errno == 0 && value <= most ? value : -1;
}

static const struct method *parse_method(const char *name)
{
	const struct method *method = method_named(name);

	if (method == NULL)
		die(EXIT_USAGE, "-m %s: there is no such method (see semlock --help)", name);
	return method;
}

static int64_t parse_wait(const struct options *options, const char *text)
{
	int64_t wait;

	if (!duration_parse(text, &wait))
		die(EXIT_USAGE, "-w %s: not a number of seconds, such as 10, .5, 500ms, 2m, 1h, 1d",
		    text);
	if (wait < 0)
		die(options->as_flock ? EXIT_SYSTEM : EXIT_USAGE, "-w %s: cannot wait a negative time",
		    text);
	return wait;
}

static int parse_status(const char *text)
{
	long status = number(text, 255);

	if (status < 0)
		die(EXIT_USAGE, "-E %s: not an exit status, 0 to 255", text);
	return (int)status;
}

static unsigned parse_slots(const char *text)
{
	long slots = number(text, SLOTS_MOST);

	if (slots < 1)
		die(EXIT_USAGE, "-j %s: not a number of slots, 1 to %d", text, SLOTS_MOST);
	return (unsigned)slots;
}

static mode_t parse_mode(const char *text)
{
	unsigned long mode;
	char *end;

	mode = strtoul(text, &end, 8);
	if (!isdigit((unsigned char)*text) || *end != '\0' || mode > 0777)
		die(EXIT_USAGE, "--mode %s: not octal permissions, such as 0660", text);
	return (mode_t)mode;
}

static int parse_fd(const char *text)
{
	long fd = number(text, INT_MAX);

	if (fd < 0)
		die(EXIT_USAGE, "%s: not a descriptor number; to lock a file, name a command as well",
		    text);
	return (int)fd;
}

/* "100", "4K", "1MiB", "1MB": sizes as flock(1) takes them. */
static off_t parse_size(const char *option, const char *text)
{
	static const char units[] = "KMGTPE";
	const char *unit;
	unsigned long long size, factor = 1;
	char *end;

	errno = 0;
	size = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno != 0)
		die(EXIT_USAGE, "%s %s: not a number of bytes", option, text);
	unit = *end == '\0' ? NULL : strchr(units, toupper((unsigned char)*end));
	if (unit != NULL) {
		for (long i = 0; i <= unit - units; i++)
			factor *= strcmp(end + 1, "B") == 0 ? 1000 : 1024;
		end += strcmp(end + 1, "iB") == 0 ? 3 : strcmp(end + 1, "B") == 0 ? 2 : 1;
	}
	if (*end != '\0' || size > (unsigned long long)LLONG_MAX / 4 / factor)
		die(EXIT_USAGE, "%s %s: not a number of bytes", option, text);
	return (off_t)(size * factor);
}

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
		options->wait = parse_wait(options, optarg);
		break;
	case 'E':
		options->busy_status = parse_status(optarg);
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
		options->slots = parse_slots(optarg);
		break;
	case 'm':
		options->method = parse_method(optarg);
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
		options->range.start = parse_size("--start", optarg);
		reading->range_asked = true;
		break;
	case OPT_LENGTH:
		options->range.length = parse_size("--length", optarg);
		reading->range_asked = true;
		break;
	case OPT_MODE:
		options->create_mode = parse_mode(optarg);
		options->exact_mode = true;
		break;
	case OPT_RM:
		options->remove = true;
		break;
	case OPT_UNFAIR:
		options->unfair = true;
		break;
	case OPT_FD:
		reading->fd = parse_fd(optarg);
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
			first->fd = parse_fd(words[0]);
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

static void choose_method(struct options *options, const struct reading *reading)
{
	const struct method *ofd = method_named("ofd");

	if (reading->fcntl_asked && (!reading->method_named || options->method != ofd)) {
		if (reading->method_named)
			die(EXIT_USAGE, "--fcntl and -m %s are two methods: choose one",
			    options->method->name);
		options->method = ofd;
	} else if (reading->range_asked && !reading->method_named) {
		options->method = ofd; /* flock(1): a range means fcntl */
	}
	if (options->method == NULL)
		die(EXIT_UNAVAILABLE, "this system has no fcntl locks of open file descriptions: "
				      "use -m posix");
	if (reading->range_asked && (options->method->can & CAN_RANGE) == 0)
		die(EXIT_USAGE, "--start and --length: -m %s locks the whole file; use -m ofd",
		    options->method->name);
}

static void refuse(bool bad, const char *reason)
{
	if (bad)
		die(EXIT_USAGE, "%s", reason);
}

/* What cannot be honoured is refused, never ignored. */
static void refuse_nonsense(const struct options *options, const struct reading *reading)
{
	bool by_fd = options->locks[0].name == NULL;
	unsigned can = options->method->can;

	refuse(options->become && options->close_fd,
	    "-F and -o: the command would close its own lock; leave one out");
	refuse(options->become && options->remove,
	    "-F and --rm: nobody is left to remove the file; leave one out");
	refuse(options->unlock && !by_fd && !options->as_flock,
	    "-u is for descriptors: semlock -u 8; a command's lock ends with the command");
	refuse(by_fd && (can & CAN_FD) == 0,
	    "-m posix: the lock would be semlock's own and end with it; use -m ofd, which "
	    "excludes the same programs");
	refuse(by_fd && options->remove, "--rm: a descriptor says nothing of the file's name");
	refuse(by_fd && options->exact_mode, "--mode: there is no file to create");
	refuse(by_fd && options->nlocks > 1, "-f: only together with LOCK and a command");
	refuse(options->slots > 0 && reading->mode_given && reading->mode == SHARED,
	    "-j and -s: a slot is held by one; leave one out");
	refuse(options->slots > 0 && (can & CAN_SLOTS) == 0,
	    "-j: this method has no slots on this system; use -m posix");
	refuse(options->slots > 0 && options->nlocks > 1,
	    "-j and -f: several locks are whole ones; leave one out");
	refuse(options->slots > 0 && options->range.length > 0 &&
		   options->range.length < (off_t)options->slots,
	    "-j: each slot is a byte, and --length has room for fewer");
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
	choose_method(options, &reading);
	refuse_nonsense(options, &reading);
	if (options->slots > 0 && (options->method->can & CAN_RANGE) == 0)
		options->locks[0].mode = SHARED; /* the gate */
}
