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
#include "locksmith/common/release.h"
#include "locksmith/common/renewal.h"
#include "locksmith/common/wait.h"

/* Ignore the signals that could end the helper, or stop it: without the helper, the lock would
 * expire while the command still runs.  The helper ends when its input ends, after the command. */
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

/* libcurl and libpq may load GnuTLS for features that we do not use.  Unless this function returns
 * 1, GnuTLS then makes 100 KB of tables when it is loaded (GNUTLS_SKIP_GLOBAL_INIT in gnutls.h).  A
 * library that does use GnuTLS initializes it by itself, and loses nothing. */
int _gnutls_global_init_skip(void);
int _gnutls_global_init_skip(void)
{
	return 1;
}

/* After LOST, semlock ends the command and closes our input within this time. */
#define STOPPING (10 * SECOND)

/* Take, hold and release the lock, or do --who.  Returns the exit status, or -1 with ERROR
 * filled. */
static int run(struct turn *turn, struct error *error)
{
	bool takes = turn->options->action == ACTION_LOCK;
	enum look look = takes ? wait_for_lock(turn, error) : engine.who(turn, error);

	if (look == LOOK_FAILED)
		return -1;
	if (look == LOOK_TAKEN) {
		if (renewal_hold(turn, error) != 0 || release_lock(turn, error) != 0)
			return -1;
		say(SAYS_FREE);
	} else if (look == LOOK_BUSY && takes) {
		say(SAYS_BUSY " %s", turn->who);
	}
	return look == LOOK_BUSY ? EXIT_BUSY : 0;
}

/* If STATUS is -1, report ERROR.  Then, if the engine was PREPARED, remove what is left on the
 * server.  Returns the exit status. */
static int finish(int status, bool prepared, struct turn *turn, const struct error *error)
{
	if (status < 0 && error->kind == ERROR_LOST) {
		say(SAYS_LOST " %s", error->text);
		if (protocol_started())
			loop_wait(clock_boottime() + STOPPING);
	} else if (status < 0) {
		say(SAYS_ERR " %d %s", exit_status_of(error->kind), error->text);
	}
	/* This comes after the answer to semlock, which a silent server must not delay.  Leave what
	 * is left of a lost lock if its command may still run. */
	if (prepared && turn->options->action == ACTION_LOCK &&
	    (protocol_released() || !protocol_started()))
		release_rest(turn);
	engine.hang_up();
	protocol_end();
	return status < 0 ? exit_status_of(error->kind) : status;
}

/* --help and --version: for people. */
static int print_for_people(enum action action)
{
	printf("%ssemlock-locksmith-%s (%s)\n", action == ACTION_HELP ? "usage: " : "", engine.name,
	    action == ACTION_HELP ? engine.schemes : PACKAGE_STRING);
	if (action == ACTION_HELP)
		options_print_help(engine.ttl);
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

static int refuse(const struct options *options, struct error *error)
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
	if (options->stale_given && !engine.stale)
		return error_plain(error, ERROR_USAGE,
		    "--stale is not for %s: its leases (--ttl) end by themselves", engine.name);
	if (!is_among(options->url_text, scheme, engine.schemes) ||
	    strncmp(options->url_text + scheme, "://", 3) != 0)
		return error_plain(error, ERROR_USAGE, "not a URL of %s: %.100s", engine.schemes,
		    options->url_text);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct turn turn = {.options = &options, .token = -1, .slot = -1};
	struct error error = {.kind = ERROR_NONE};
	int status;
	bool prepared;

	outlive_signals();
	/* a core file would have the password in it */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	status = options_parse(argc, argv, &options, &error);
	if (status == 0 && (options.action == ACTION_HELP || options.action == ACTION_VERSION))
		return print_for_people(options.action);
	say(SAYS_LOCKSMITH " %d%s%s", LOCKSMITH_PROTOCOL, *engine.words != '\0' ? " " : "",
	    engine.words);
	turn.lease = options.ttl > 0 ? options.ttl : engine.ttl;
	if (status == 0)
		status = refuse(&options, &error);
	prepared = status == 0 && engine.prepare(&options, &error) == 0;
	status = finish(prepared ? run(&turn, &error) : -1, prepared, &turn, &error);
#ifndef __SANITIZE_ADDRESS__ /* which looks for leaks at exit(3) */
	/* semlock waits until this process has ended.  Skip exit(3): it would let libraries tidy
	 * up, which takes longer than the start of a command. */
	_exit(status);
#endif
	return status;
}
