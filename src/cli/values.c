/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "methods/table.h"
#include "cli/values.h"
#include "lock/lock.h"
#include "report/error.h"
#include "report/text.h"
#include "sys/deadline.h"

static const struct {
	char name[6];
	int number;
} signal_names[] = {
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

/* The number of "TERM", "SIGTERM", "term" or "15"; -1: no such signal. */
static int parse_signal(const char *text)
{
	long number = text_number(text, NSIG - 1);

	if (number > 0)
		return (int)number;
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
		if (strcasecmp(text, signal_names[i].name) == 0)
			return signal_names[i].number;
	return -1;
}

const struct method *value_method(const char *name)
{
	struct similar similar = {.word = name, .length = strlen(name)};
	const struct method *method = method_named(name);
	char all[200] = "";

	if (method != NULL)
		return method;
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		similar_try(&similar, method->name);
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", n == 0 ? "" : ", ",
		    method->name);
	}
	die(EXIT_USAGE,
	    "-m %s: there is no such method%s (%s; a server is named by a URL in place of LOCK)",
	    name, similar_hint(&similar, "", ""), all);
}

static noreturn void refuse_duration(const char *option, const char *text)
{
	die(EXIT_USAGE, "%s %s: not a number of seconds, such as 10, .5, 500ms, 10s, 2m, 1h, 1d",
	    option, text);
}

int64_t value_wait(const char *text, int negative_status)
{
	int64_t wait;

	if (!duration_parse(text, &wait))
		refuse_duration("-w", text);
	if (wait < 0)
		die(negative_status, "-w %s: cannot wait a negative time", text);
	return wait;
}

int64_t value_duration(const char *option, const char *text, int64_t least)
{
	int64_t duration;

	if (!duration_parse(text, &duration) || duration < 0)
		refuse_duration(option, text);
	if (duration < least)
		die(EXIT_USAGE, "%s %s: must be more than 0", option, text);
	return duration;
}

void value_signal_names(char *text, size_t size, const char *separator)
{
	*text = '\0';
	for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
		snprintf(text + strlen(text), size - strlen(text), "%s%s", i == 0 ? "" : separator,
		    signal_names[i].name);
}

static noreturn void refuse_signal(const char *option, const char *also, const char *text)
{
	struct similar similar = {.word = text, .length = strlen(text)};
	char all[200];

	for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
		similar_try(&similar, signal_names[i].name);
	value_signal_names(all, sizeof all, ", ");
	die(EXIT_USAGE, "%s %s: %snot a signal%s (%s, or a number)", option, text, also,
	    similar_hint(&similar, "", ""), all);
}

int value_signal(const char *option, const char *text)
{
	int signo = parse_signal(text);

	if (signo < 0)
		refuse_signal(option, "", text);
	return signo;
}

int value_on_lost(const char *text)
{
	int signo = parse_signal(text);

	if (strcmp(text, "warn") == 0)
		return LOST_WARN;
	if (signo < 0)
		refuse_signal("--on-lost", "not \"warn\", and ", text);
	return signo;
}

long value_number(const char *option, const char *text, const char *what, long least, long most)
{
	long number = text_number(text, most);

	if (number < least)
		die(EXIT_USAGE, "%s %s: not %s, %ld to %ld", option, text, what, least, most);
	return number;
}

mode_t value_mode(const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (!isdigit((unsigned char)*text) || *end != '\0' || mode > 0777)
		die(EXIT_USAGE, "--mode %s: not octal permissions, such as 0660", text);
	return (mode_t)mode;
}

int value_fd(const char *option, const char *text)
{
	long fd = text_number(text, INT_MAX);

	if (fd < 0)
		die(EXIT_USAGE, "%s %s: not a descriptor number, such as 8", option, text);
	return (int)fd;
}

off_t value_size(const char *option, const char *text, off_t most)
{
	static const char units[] = "KMGTPE";
	const char *unit;
	unsigned long long size, factor = 1;
	char *end;

	errno = 0;
	size = strtoull(text, &end, 10);
	unit = *end == '\0' ? NULL : strchr(units, toupper((unsigned char)*end));
	if (unit != NULL) {
		for (long i = 0; i <= unit - units; i++)
			factor *= strcmp(end + 1, "B") == 0 ? 1000 : 1024;
		end += strcmp(end + 1, "iB") == 0 ? 3 : strcmp(end + 1, "B") == 0 ? 2 : 1;
	}
	if (!isdigit((unsigned char)text[strspn(text, " \t+")]) || *end != '\0')
		die(EXIT_USAGE, "%s %s: not a number of bytes, such as 100, 4K, 1MiB", option,
		    text);
	if (errno != 0 || size > (unsigned long long)most / factor)
		die(EXIT_USAGE, "%s %s: more than the limit, which is %lld", option, text,
		    (long long)most);
	return (off_t)(size * factor);
}
