/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-NAME - waits for a lock on a server, keeps it, and releases it when its input
 * ends. */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "locksmith/common/engine.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/options.h"
#include "locksmith/common/protocol.h"

#define RETRY_AFTER SECOND /* between two tries of a server that is not there */

/* When the command ends, the input ends, and the lock is released.  If a signal ended the helper
 * before, the lock would lapse under a running command: ignore them all. */
static void outlive_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGTTIN,
	    SIGTTOU, SIGALRM, SIGUSR1, SIGUSR2};
	sigset_t none;

	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* libcurl and libpq may load GnuTLS for what is not used here, and its constructor makes 100 KB of
 * tables.  It asks for this function first (GNUTLS_SKIP_GLOBAL_INIT in gnutls.h).  A library that
 * does use GnuTLS initializes it by itself, and loses nothing. */
int _gnutls_global_init_skip(void);
int _gnutls_global_init_skip(void)
{
	return 1;
}

/* After LOST, semlock stops the command and closes our input, at most so much later. */
#define STOPPING (10 * SECOND)

/* May the engine be run again?  With a time to wait, a server that is not there yet is waited for
 * like a lock.  Without one, a wrong name would be waited for without end, but a server that was
 * reached, and only has not answered yet, is none. */
static bool may_run_again(const struct options *options, const struct error *error)
{
	if (options->action != ACTION_LOCK || options->no_wait || protocol_released() ||
	    clock_boottime() >= options->until)
		return false;
	return error->kind == ERROR_SLOW || (error->kind == ERROR_AWAY && options->wait != NEVER);
}

static enum engine_outcome run_engine(const struct options *options, struct error *error)
{
	for (;;) {
		char text[sizeof error->text + 32];
		enum engine_outcome outcome;

		*error = (struct error){.kind = ERROR_NONE};
		outcome = engine.run(options, error);
		if (outcome != ENGINE_FAILED || !may_run_again(options, error))
			return outcome;
		if (engine.end != NULL)
			engine.end(true);
		snprintf(text, sizeof text, "note=for the server: %s", error->text);
		say_wait(text);
		loop_wait(earlier(clock_boottime() + spread(RETRY_AFTER), options->until));
		if (protocol_released())
			return ENGINE_RELEASED;
	}
}

static int finish(enum engine_outcome outcome, const struct error *error)
{
	if (outcome == ENGINE_FAILED && error->kind == ERROR_LOST) {
		say(SAYS_LOST " %s", error->text);
		if (protocol_started())
			loop_wait(clock_boottime() + STOPPING);
	} else if (outcome == ENGINE_FAILED && error->text[0] != '\0') {
		say(SAYS_ERR " %d %s", exit_status_of(error->kind), error->text);
	}
	if (engine.end != NULL)
		engine.end(protocol_released() || !protocol_started());
	protocol_end();
	return outcome == ENGINE_FAILED ? exit_status_of(error->kind)
	       : outcome == ENGINE_BUSY ? EXIT_BUSY
	                                : 0;
}

/* --help and --version: for people. */
static int print_for_people(enum action action)
{
	printf("%ssemlock-locksmith-%s (%s)\n", action == ACTION_HELP ? "usage: " : "", engine.name,
	    action == ACTION_HELP ? engine.schemes : PACKAGE_STRING);
	if (action == ACTION_HELP)
		fputs(options_help, stdout);
	return fflush(stdout) == 0 ? 0 : EXIT_SYSTEM;
}

/* Are the LENGTH bytes at TEXT one of WORDS, in any case? */
static bool is_among(const char *text, size_t length, const char *words)
{
	size_t word;

	for (; *words != '\0'; words += word + strspn(words + word, " ")) {
		word = strcspn(words, " ");
		if (word == length && strncasecmp(words, text, length) == 0)
			return true;
	}
	return false;
}

static bool offers(const char *word)
{
	return is_among(word, strlen(word), engine.words);
}

static int parse_url(struct options *options, struct error *error)
{
	const char *missing = options->mode == LEASE_SHARED && !offers(OFFER_SHARED)
	                          ? "--mode=shared"
	                      : options->mode == LEASE_SLOTS && !offers(OFFER_SLOTS) ? "--slots"
	                      : options->queue_max > 0 && !offers(OFFER_QUEUE_MAX)   ? "--queue-max"
	                                                                             : NULL;
	size_t scheme = strcspn(options->url_text, ":");

	if (missing != NULL)
		return error_plain(error, ERROR_USAGE, "%s is not for this kind of server",
		    missing);
	if (!is_among(options->url_text, scheme, engine.schemes) ||
	    strncmp(options->url_text + scheme, "://", 3) != 0)
		return error_plain(error, ERROR_USAGE, "this is no URL of %s: %.100s",
		    engine.schemes, options->url_text);
	return engine.parse(options->url_text, &options->url, error);
}

int main(int argc, char **argv)
{
	struct error error = {.kind = ERROR_NONE};
	struct options options;
	int status;

	outlive_signals();
	/* a core file would have the password in it */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	status = options_parse(argc, argv, &options, &error);
	if (status == 0 && (options.action == ACTION_HELP || options.action == ACTION_VERSION))
		return print_for_people(options.action);
	if (status == 0)
		status = parse_url(&options, &error);
	say(SAYS_LOCKSMITH " %d%s%s", LOCKSMITH_PROTOCOL, *engine.words != '\0' ? " " : "",
	    engine.words);
	if (status != 0) {
		say(SAYS_ERR " %d %s", exit_status_of(error.kind), error.text);
		return exit_status_of(error.kind);
	}
	status = finish(run_engine(&options, &error), &error);
#ifndef __SANITIZE_ADDRESS__ /* which looks for leaks at exit(3) */
	/* semlock waits for the end of this process: libraries tidy up for longer than it takes to
	 * start a command. */
	_exit(status);
#endif
	return status;
}
