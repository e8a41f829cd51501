/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/request.h"
#include "cli/reading.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/server/server.h"
#include "report/error.h"
#include "report/status_fd.h"
#include "sys/memory.h"

/* ---- the options ---- */

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
    {OPT_DIE_WITH_PARENT, offsetof(struct request, dies_with_parent)},
    {OPT_RM, offsetof(struct request, spec.to_be_removed)},
    {OPT_INIT, offsetof(struct request, spec.init)},
    {OPT_NESTED, offsetof(struct request, nested)},
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
		request->locks[request->nlocks++] =
		    (struct lock_spec){.name = optarg, .fd = -1, .mode = reading->mode};
		break;
	case 'j':
		request->spec.slots =
		    (unsigned)value_number("-j", optarg, "a number of slots", 1, SLOTS_MOST);
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
		                                : (pid_t)value_number("--hold", optarg,
						      "a process number", 1, INT_MAX);
		break;
	case OPT_ON_LOST:
		request->on_lost = value_on_lost(optarg);
		break;
	case OPT_STALE:
		request->spec.stale = value_duration("--stale", optarg, 1);
		break;
	case OPT_TAKE:
		request->spec.take =
		    (unsigned)value_number("--take", optarg, "a number of slots", 1, SLOTS_MOST);
		break;
	case OPT_TTL:
		request->spec.ttl = value_duration("--ttl", optarg, 1);
		break;
	case OPT_LOG:
		request->log = optarg;
		break;
	case OPT_NAME:
		reading->name = optarg;
		break;
	case OPT_STATUS_FD:
		if (status_fd_use(value_fd("--status-fd", optarg)) != 0)
			die(EXIT_USAGE, "--status-fd %s: this descriptor is not open", optarg);
		break;
	case OPT_FIRST:
		request->first = true;
		break;
	case OPT_QUEUE_MAX:
		request->queue_max =
		    (int)value_number("--queue-max", optarg, "a number of waiters", 0, INT_MAX);
		break;
	case OPT_OLDER:
		request->older = value_duration("--older", optarg, 1);
		break;
	case OPT_REPLACE:
	case OPT_TOGGLE:
		request->preempt = option == OPT_REPLACE ? PREEMPT_REPLACE : PREEMPT_TOGGLE;
		request->preempt_signal =
		    optarg == NULL
			? SIGTERM
			: value_signal(option == OPT_REPLACE ? "--replace" : "--toggle", optarg);
		break;
	case OPT_RUN_TIMEOUT:
		request->run_timeout = value_duration("--run-timeout", optarg, 0);
		reading->limited = true;
		break;
	case OPT_SIGNAL:
		request->signal_text = optarg;
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
		reading->shell = true;
		/* they may follow: -c --fd 9 'SHELL COMMAND' */
		return !reading->fd_given && reading->name == NULL;
	case 'h':
		usage_help();
	case 'V':
		usage_version(request->as_flock);
	}
	return true;
}

static void read_options(struct request *request, struct reading *reading, int argc, char **argv)
{
	int option;

	opterr = 0;
	do {
		option = getopt_long(argc, argv, usage_letters, usage_options, NULL);
		if (option == ':')
			die(EXIT_USAGE, "%s: its value is missing (see --help)",
			    /* musl's optind can be past the end */
			    argv[(optind < argc ? optind : argc) - 1]);
		if (option == '?')
			usage_refuse(argc, argv);
		/* Does it go with --who? */
		reading->acts = reading->acts ||
		                !(option < 0 || option == OPT_WHO || option == OPT_JSON ||
				    option == 'm' || option == OPT_FCNTL || option == OPT_NAME);
	} while (option >= 0 && take_option(request, reading, option));
	if (reading->shell && !reading->fd_given && reading->name == NULL)
		die(EXIT_USAGE, "-c stands behind LOCK: LOCK -c 'SHELL COMMAND'");
}

/* ---- LOCK, FD and COMMAND ---- */

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

static const char *named_lock(const char *name, bool create)
{
	struct error error;
	const char *path = named_lock_path(name, create, &error);

	if (path == NULL)
		die(exit_status_of(error.kind), "--name %s: %s", name, error.text);
	return path;
}

/* LOCK without a command is the number of a caller's descriptor. */
static int operand_fd(const struct request *request, const char *word)
{
	if (request->unlock)
		return value_fd("-u", word);
	if (*word == '\0')
		die(EXIT_USAGE, "LOCK is an empty word: is a variable not set?");
	if (word[strspn(word, " \t+0123456789")] != '\0')
		die(EXIT_USAGE,
		    "what to run is missing after %s (only a descriptor's number may stand alone)",
		    word);
	return value_fd("FD", word);
}

/* Refuse what would only fail as a command that is not found.  flock(1) tries to run it. */
static void check_command(const char *lock, const char *word, bool behind_lock)
{
	if (*word == '\0')
		die(EXIT_USAGE, "COMMAND is an empty word: is a variable not set?");
	if (behind_lock && strcmp(word, "--") == 0)
		die(EXIT_USAGE, "--: COMMAND is missing behind it");
	if (behind_lock && *word == '-' && usage_knows(word))
		die(EXIT_USAGE, "%s: options stand before LOCK; to run what is called so: -- %s",
		    word, word);
	if (behind_lock && *word == '-')
		die(EXIT_USAGE,
		    "%s: COMMAND begins with a dash: is LOCK missing before %s? To run what is "
		    "called so: -- %s",
		    word, lock, word);
}

static void operands_read(struct request *request, const struct reading *reading, char **words)
{
	struct lock_spec *first = &request->locks[0];
	bool is_shell = reading->shell;
	/* else behind the options */
	bool behind_lock = reading->name == NULL && !reading->fd_given;

	*first = (struct lock_spec){.fd = reading->fd, .mode = reading->mode};
	if (reading->name != NULL) {
		request->label = first->name = named_lock(reading->name, true);
		first->of_user = true;
	} else if (!reading->fd_given) {
		if (words[0] == NULL)
			die(EXIT_USAGE, "what to lock is missing (see --help)");
		request->label = words[0];
		if (words[1] == NULL && !request->hold) {
			first->fd = operand_fd(request, words[0]);
			return;
		}
		first->name = *words++;
	}
	if (!is_shell && words[0] != NULL &&
	    (strcmp(words[0], "-c") == 0 || strcmp(words[0], "--command") == 0)) {
		is_shell = true;
		words++;
	} else if (!is_shell && words[0] != NULL && words[1] != NULL &&
		   strcmp(words[0], "--") == 0) {
		words++;
		behind_lock = false;
	}
	if (!is_shell && words[0] != NULL && !request->as_flock)
		check_command(request->label, words[0], behind_lock);
	if (is_shell)
		request->command = shell_command(words);
	else if (words[0] != NULL)
		request->command = words;
	if (reading->name != NULL && request->command == NULL && !request->hold)
		die(EXIT_USAGE, "--name: what to run is missing (see --help)");
}

static void operands_locks(struct request *request, const struct reading *reading, char **words)
{
	request->nlocks = 0;
	if (reading->name != NULL)
		request->locks[request->nlocks++] =
		    (struct lock_spec){.name = named_lock(reading->name, false), .of_user = true};
	for (; *words != NULL; words++) {
		if (**words == '-')
			die(EXIT_USAGE,
			    "%s: options stand before LOCK; a file that is called so is ./%s",
			    *words, *words);
		request->locks[request->nlocks++] = (struct lock_spec){.name = *words, .fd = -1};
	}
	request->label = request->locks[0].name;
}

/* ---- the method ---- */

/* Invoked as flock, URLs are not recognised.  An empty LOCK is an unset variable: --who must not
 * report it free. */
static void choose_method(struct request *request, const struct reading *reading)
{
	bool named = reading->method_named || reading->fcntl_asked || reading->range_asked;

	if (reading->fcntl_asked &&
	    (!reading->method_named || request->spec.method != &method_ofd)) {
		if (reading->method_named)
			die(EXIT_USAGE, "--fcntl and -m %s are two methods: choose one",
			    request->spec.method->name);
		request->spec.method = &method_ofd;
	} else if (reading->range_asked && !reading->method_named) {
		request->spec.method = &method_ofd; /* as with flock(1) */
	}
	if (reading->range_asked && (request->spec.method->can & CAN_RANGE) == 0)
		die(EXIT_USAGE, "--start and --length: -m %s locks the whole file; use -m ofd",
		    request->spec.method->name);
	for (unsigned i = 0; i < request->nlocks; i++) {
		const char *name = request->locks[i].name;
		bool may_be_url = name != NULL && !request->as_flock && strchr(name, ':') != NULL;
		const struct method *method = may_be_url ? server_method(name) : NULL;

		if (name != NULL && *name == '\0')
			die(request->as_flock ? EXIT_NOTOPEN : EXIT_USAGE,
			    "LOCK is an empty word: is a variable not set?");
		if (may_be_url && server_mistyped(name))
			die(EXIT_USAGE,
			    "%s: a URL has two slashes after its colon; a file of this "
			    "name is ./%s",
			    name, name);
		if (method != NULL && request->nlocks > 1 && !request->who)
			die(EXIT_USAGE,
			    "-f: %s is on a server, and -f is for this machine; one in the other: "
			    "semlock LOCK semlock URL COMMAND",
			    name);
		if (method != NULL && named)
			die(EXIT_USAGE,
			    "%s: a URL names a server: leave out -m, --fcntl, --start and "
			    "--length",
			    name);
		if (method != NULL && !request->who)
			request->spec.method = method;
	}
}

/* ---- all of it ---- */

void request_read(struct request *request, int argc, char **argv)
{
	struct reading reading = {.mode = EXCLUSIVE, .fd = -1};
	struct lock_spec named;
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

	*request = (struct request){
	    .as_flock = argc > 0 && strcmp(slash == NULL ? argv[0] : slash + 1, "flock") == 0,
	    .nlocks = 1,
	    .wait = -1,
	    .queue_max = -1,
	    .busy_status = EXIT_BUSY,
	    .spec = {.method = &method_flock, .create_mode = 0666},
	};
	if (request->as_flock)
		report_as("flock");
	/* Room for LOCK itself, and for one -f in every two words. */
	request->locks = memory_lasting(((size_t)argc + 1) * sizeof *request->locks);
	if (request->locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	read_options(request, &reading, argc, argv);
	if (request->who)
		operands_locks(request, &reading, argv + optind);
	else
		operands_read(request, &reading, argv + optind);
	request->method_named = reading.method_named || reading.fcntl_asked;
	choose_method(request, &reading);
	options_check(request, &reading);
	if (request->spec.slots > 0 && request->spec.method->family != ON_SERVER &&
	    (request->spec.method->can & CAN_RANGE) == 0)
		request->locks[0].mode = SHARED; /* each slot's holder shares the lock itself */
	request->spec.command = request->command;
	request->spec.may_be_deleted = request->as_flock || request->unlock;
	for (unsigned i = 0; i < request->nlocks; i++) { /* the rest they have in common */
		named = request->locks[i];
		request->locks[i] = request->spec;
		request->locks[i].name = named.name;
		request->locks[i].fd = named.fd;
		request->locks[i].mode = named.mode;
		request->locks[i].of_user = named.of_user;
		if (named.of_user && !request->spec.exact_mode)
			/* root's directory can be entered by all */
			request->locks[i].create_mode = 0600;
	}
}
