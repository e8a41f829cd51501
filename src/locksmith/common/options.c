/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/options.h"
#include "locksmith/common/protocol.h"
#include "protocol/locksmith_words.h"
#include "report/text.h"

/* With --no-wait, semlock gets its answer within three seconds, even if the server is silent. */
#define NO_WAIT (5 * SECOND / 2)
#define POLL_INTERVAL (2 * SECOND) /* between two requests */
#define LAST_ANSWER (SECOND / 2)   /* for an answer after --wait is over; semlock waits a second */

static const char help[] =
    "  [OPTION...] URL\n"
    "Holds a lock on a server for semlock; see semlock-locksmith(7).\n"
    "  --mode=exclusive|shared   how to hold it (exclusive)\n"
    "  --slots=N                 one of N slots\n"
    "  --ttl=SECS                lease (%lld)\n"
    "  --stale=SECS              ftp: remove a lock directory without an owner after SECS (600;\n"
    "                            0: never)\n"
    "  --wait[=SECS]             wait for it, SECS at most (the default: wait forever)\n"
    "  --no-wait                 do not wait\n"
    "  --queue-max=N             etcd: wait only if fewer than N others wait\n"
    "  --pid=PID, --note=TEXT    what others are told about the holder\n"
    "  --who                     print who holds it, and take nothing\n";

enum {
	OPT_MODE = 256,
	OPT_SLOTS,
	OPT_TTL,
	OPT_STALE,
	OPT_WAIT,
	OPT_NO_WAIT,
	OPT_QUEUE_MAX,
	OPT_PID,
	OPT_NOTE
};

static int action = ACTION_LOCK; /* getopt_long(3) sets it */

static const struct option table[] = {{"mode", required_argument, NULL, OPT_MODE},
    {"slots", required_argument, NULL, OPT_SLOTS}, {"ttl", required_argument, NULL, OPT_TTL},
    {"stale", required_argument, NULL, OPT_STALE}, {"wait", optional_argument, NULL, OPT_WAIT},
    {"no-wait", no_argument, NULL, OPT_NO_WAIT},
    {"queue-max", required_argument, NULL, OPT_QUEUE_MAX},
    {"pid", required_argument, NULL, OPT_PID}, {"note", required_argument, NULL, OPT_NOTE},
    {"who", no_argument, &action, ACTION_WHO}, {"help", no_argument, &action, ACTION_HELP},
    {"version", no_argument, &action, ACTION_VERSION}, {NULL, 0, NULL, 0}};

void options_print_help(int64_t ttl)
{
	printf(help, (long long)(ttl / SECOND));
}

static int parse_count(const char *text, long most, unsigned int *count)
{
	long number = text_number(text, most);

	if (number < 1)
		return -1;
	*count = (unsigned int)number;
	return 0;
}

const char *lease_mode_name(enum lease_mode mode)
{
	return mode == LEASE_SHARED  ? OFFER_SHARED
	       : mode == LEASE_SLOTS ? OFFER_SLOTS
	                             : "exclusive";
}

long options_pid(const struct options *options)
{
	return protocol_command() > 0 ? protocol_command() : options->pid;
}

void options_holder(const struct options *options, char *text, size_t size)
{
	char host[65] = "";

	gethostname(host, sizeof host - 1);
	snprintf(text, size, "pid=%ld host=%s since=%lld%s%.200s", options_pid(options), host,
	    (long long)time(NULL), options->note[0] != '\0' ? " note=" : "", options->note);
}

static int parse_mode(struct options *options, const char *text)
{
	options->mode = strcmp(text, OFFER_SHARED) == 0 ? LEASE_SHARED : LEASE_EXCLUSIVE;
	return strcmp(text, lease_mode_name(options->mode)) == 0 ? 0 : -1;
}

/* Return USUAL, a time in ns.  In a build for tests, return the time in the environment variable
 * NAME instead, if it is set. */
static int64_t unless_tested(const char *name, int64_t usual)
{
#ifdef ENABLE_CRASH_POINTS
	const char *text = getenv(name);

	if (text != NULL)
		bounded_duration(text, &usual);
#else
	(void)name;
#endif
	return usual;
}

static int parse_option(struct options *options, int option, const char *argument)
{
	switch (option) {
	case OPT_MODE:
		return parse_mode(options, argument);
	case OPT_SLOTS:
		return parse_count(argument, 100000, &options->slots);
	case OPT_TTL:
		/* A lease shorter than two seconds could not be kept over any network. */
		return bounded_duration(argument, &options->ttl) != 0 || options->ttl < 2 * SECOND
		           ? -1
		           : 0;
	case OPT_STALE:
		options->stale_given = true;
		return bounded_duration(argument, &options->stale);
	case OPT_WAIT:
		options->no_wait = false;
		options->wait = NEVER;
		return argument != NULL ? bounded_duration(argument, &options->wait) : 0;
	case OPT_NO_WAIT:
		options->no_wait = true;
		return 0;
	case OPT_QUEUE_MAX:
		return parse_count(argument, INT32_MAX, &options->queue_max);
	case OPT_PID:
		options->pid = text_number(argument, INT32_MAX);
		return options->pid > 0 ? 0 : -1;
	case OPT_NOTE:
		options->note = argument;
		return 0;
	default: /* an ACTION_... */
		return 0;
	}
}

int options_parse(int argc, char **argv, struct options *options, struct error *error)
{
	int64_t now = clock_boottime(), no_wait = unless_tested("SEMLOCK_ANSWER_WITHIN", NO_WAIT);
	int option, which = 0;

	*options = (struct options){.mode = LEASE_EXCLUSIVE,
	    .stale = 600 * SECOND,
	    .interval = unless_tested("SEMLOCK_LOOK_EVERY", POLL_INTERVAL),
	    .wait = NEVER,
	    .pid = (long)getppid(),
	    .note = ""};
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", table, &which)) != -1) {
		if (option == '?')
			return error_plain(error, ERROR_USAGE, "unknown or incomplete option: %s",
			    argv[optind - 1]);
		if (parse_option(options, option, optarg) != 0)
			return error_plain(error, ERROR_USAGE, "invalid --%s=%s", table[which].name,
			    optarg != NULL ? optarg : "");
	}
	options->action = (enum action)action;
	if (options->action == ACTION_HELP || options->action == ACTION_VERSION)
		return 0;
	if (optind + 1 != argc)
		return error_plain(error, ERROR_USAGE, "one URL is needed");
	if (options->slots > 0 && options->mode == LEASE_SHARED)
		return error_plain(error, ERROR_USAGE,
		    "--slots and --mode=shared exclude each other");
	if (options->slots > 0)
		options->mode = LEASE_SLOTS;
	if (options->no_wait) {
		options->until = now + no_wait;
		options->answer_by = options->until;
	} else if (options->wait == NEVER) {
		options->until = NEVER;
		options->answer_by = NEVER;
	} else {
		options->until = now + options->wait;
		/* With a short wait, a slow server gets at least as long as with --no-wait. */
		options->answer_by = now + options->wait + LAST_ANSWER;
		if (options->answer_by < now + no_wait)
			options->answer_by = now + no_wait;
	}
	options->url_text = argv[optind];
	return 0;
}
