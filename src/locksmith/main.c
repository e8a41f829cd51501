/* semlock-locksmith - waits for a lock on a server, keeps it, and lets it go when its input ends.
 */
#include <config.h>

#include "locksmith/clock.h"
#include "locksmith/dirlock.h"
#include "locksmith/etcd.h"
#include "locksmith/guard.h"
#include "locksmith/options.h"
#include "locksmith/protocol.h"
#include "locksmith/transfer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Whoever stops the command makes our input end, and that is when to go. To die of a signal earlier
   would let the lock lapse under a command that still runs. */
static void outlive_signals(void)
{
	static const int deaf[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGTTIN,
	    SIGTTOU, SIGALRM, SIGUSR1, SIGUSR2};
	sigset_t none;

	for (size_t i = 0; i < sizeof deaf / sizeof deaf[0]; i++)
		signal(deaf[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Nobody reads a password out of a core file. */
static void no_core_file(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
}

/* The lock is lost: see to it that the command is, too, unless it has given it back. With semlock alive
   this is its work, and we stay until it has closed our input, or until the lease ends. */
static void see_it_stopped(void)
{
	int64_t end;

	if (protocol_released())
		return;
	guard_lost();
	while (!protocol_released() && !guard_act())
		transfer_pause(clock_min(guard_next(), clock_now() + NS_PER_S / 20));
	/* Whoever was killed is gone in a moment. */
	for (end = clock_now() + NS_PER_S; !protocol_released() && clock_now() < end;)
		transfer_pause(clock_now() + NS_PER_S / 50);
}

static bool is_etcd(const struct options *o)
{
	return strcmp(o->url.scheme, "etcd") == 0 || strcmp(o->url.scheme, "etcds") == 0;
}

static int run(const struct options *o, struct why *why)
{
	const char *scheme = o->url.scheme;

	if (is_etcd(o))
		return etcd_run(o, why);
	if (strcmp(scheme, "ftp") == 0 || strcmp(scheme, "ftpes") == 0 ||
	    strcmp(scheme, "ftps") == 0 || strcmp(scheme, "sftp") == 0)
		return dirlock_run(o, why);
	why_set(why, EXIT_USAGE, "unknown kind of URL: %s://", scheme);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct why why = {0, ""};
	struct options options;
	int status;

	guard_start();
	outlive_signals();
	no_core_file();
	if (options_parse(argc, argv, &options, &why) != 0) {
		say("ERR %d %s", why.status, why.text);
		return why.status;
	}
	if (options.action == ACTION_HELP || options.action == ACTION_VERSION) {
		fputs(options.action == ACTION_HELP ? options_help
						    : "semlock-locksmith (" PACKAGE_STRING ")\n",
		    stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_INTERNAL;
	}
	if (transfer_init() != 0) {
		say("ERR %d libcurl does not start", EXIT_INTERNAL);
		return EXIT_INTERNAL;
	}
	status = run(&options, &why);
	if (status == EXIT_LOST) {
		say("LOST %s", why.text);
		see_it_stopped();
	} else if (status > EXIT_BUSY && why.text[0] != '\0') {
		say("ERR %d %s", status, why.text);
	}
	if (is_etcd(&options))
		etcd_end(protocol_released());
	protocol_end();
	return status;
}
