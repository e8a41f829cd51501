/* SPDX-License-Identifier: MIT */
/* probe - the one C helper of the tests.
 *
 * Each sub-command replaces a sleep or a guess: it sleeps in the kernel until the
 * event has happened, or reports that it has not. */
#include <config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"

static const struct {
	const char *name;
	int (*run)(int, char **);
} commands[] = {
    {"hold", cmd_hold},
    {"hold-in-thread", cmd_hold_in_thread},
    {"closefrom-then-hold", cmd_closefrom_then_hold},
    {"leave-behind", cmd_leave_behind},
    {"fds", cmd_fds},
    {"fcntl-hold", cmd_fcntl_hold},
    {"tickets", cmd_tickets},
    {"flip", cmd_flip},
    {"free", cmd_free},
    {"until-free", cmd_until_free},
    {"with-mask", cmd_with_mask},
    {"with-ignored", cmd_with_ignored},
    {"with-default", cmd_with_default},
    {"with-closed", cmd_with_closed},
    {"rlimit-nofile", cmd_rlimit_nofile},
    {"blocked", cmd_blocked},
    {"state", cmd_state},
    {"gone", cmd_gone},
    {"line", cmd_line},
    {"room", cmd_room},
    {"sweep", cmd_sweep},
    {"watchdog", cmd_watchdog},
    {"signals", cmd_signals},
    {"inside", cmd_inside},
    {"verdict", cmd_verdict},
    {"storm", cmd_storm},
    {"json", cmd_json},
    {"pause", cmd_pause},
    {"pty", cmd_pty},
    {"timer", cmd_timer},
    {"pauses", cmd_pauses},
    {"slowness", cmd_slowness},
    {"nothing", cmd_nothing},
    {"socket", cmd_socket},
};

static const struct {
	const char *name;
	int number;
} signals[] = {
    {"HUP", SIGHUP},
    {"INT", SIGINT},
    {"QUIT", SIGQUIT},
    {"KILL", SIGKILL},
    {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE},
    {"ALRM", SIGALRM},
    {"TERM", SIGTERM},
    {"CHLD", SIGCHLD},
    {"CONT", SIGCONT},
    {"STOP", SIGSTOP},
    {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU},
    {"WINCH", SIGWINCH},
    {"URG", SIGURG},
    {"XCPU", SIGXCPU},
    {"VTALRM", SIGVTALRM},
    {"PROF", SIGPROF},
};

enum { COMMANDS = sizeof commands / sizeof *commands, SIGNALS = sizeof signals / sizeof *signals };

void fail(const char *what, const char *name)
{
	int error = errno;

	fprintf(stderr, "probe: %s: %s: %s\n", what, name, strerror(error));
	exit(71);
}

void misuse(const char *how)
{
	fprintf(stderr, "usage: probe %s\n", how);
	exit(64);
}

long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end != '\0')
		misuse("... a number was expected");
	return value;
}

int signal_number(const char *name)
{
	for (int i = 0; i < SIGNALS; i++)
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	misuse("... a signal's name without SIG was expected");
}

const char *signal_name(int n)
{
	for (int i = 0; i < SIGNALS; i++)
		if (signals[i].number == n)
			return signals[i].name;
	return "?";
}

long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

void become(char **argv)
{
	execvp(argv[0], argv);
	fprintf(stderr, "probe: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int main(int argc, char **argv)
{
	for (int i = 0; argc >= 2 && i < COMMANDS; i++)
		if (strcmp(commands[i].name, argv[1]) == 0)
			return commands[i].run(argc - 1, argv + 1);
	misuse("SUB-COMMAND [ARGUMENT...]");
}
