#include <config.h>

#include <ctype.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

#include "sys/signals.h"

static const struct {
	const char *name;
	int number;
} names[] = {
    {"ABRT", SIGABRT},
    {"ALRM", SIGALRM},
    {"CONT", SIGCONT},
    {"HUP", SIGHUP},
    {"INT", SIGINT},
    {"KILL", SIGKILL},
    {"PIPE", SIGPIPE},
    {"QUIT", SIGQUIT},
    {"STOP", SIGSTOP},
    {"TERM", SIGTERM},
    {"TSTP", SIGTSTP},
    {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},
    {"WINCH", SIGWINCH},
};

int signals_number(const char *text)
{
	char *end;
	long number;

	if (isdigit((unsigned char)*text)) {
		number = strtol(text, &end, 10);
		return *end == '\0' && number > 0 && number < NSIG ? (int)number : -1;
	}
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcasecmp(text, names[i].name) == 0)
			return names[i].number;
	return -1;
}

void signals_take_out(sigset_t *set, const sigset_t *signals)
{
	for (int signo = 1; signo < NSIG; signo++)
		if (sigismember(signals, signo) == 1)
			sigdelset(set, signo);
}
