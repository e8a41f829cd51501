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
#include "sys/memory.h"

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

/* Returns our name for the method that other tools call NAME, or NULL. */
static const char *method_elsewhere(const char *name)
{
	static const struct {
		char theirs[12], ours[8];
	} methods[] = {
	    {"create", "excl"},
	    {"dir", "mkdir"},
	    {"directory", "mkdir"},
	    {"dotlock", "link"},
	    {"dotlockfile", "link"},
	    {"fcntl", "ofd"},
	    {"file", "excl"},
	    {"lockf", "posix"},
	    {"lockfile", "link"},
	    {"o_excl", "excl"},
	    {"pid", "excl"},
	    {"pidfile", "excl"},
	    {"record", "ofd"},
	};

	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (strcmp(name, methods[i].theirs) == 0)
			return methods[i].ours;
	return NULL;
}

const struct method *value_method(const char *name)
{
	struct similar similar = {.word = name, .length = strlen(name)};
	const struct method *method = method_named(name);
	const char *ours = method_elsewhere(name);
	char all[200] = "", hint[32] = "";

	if (method != NULL)
		return method;
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		similar_try(&similar, method->name);
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", n == 0 ? "" : ", ",
		    method->name);
	}
	if (ours != NULL)
		snprintf(hint, sizeof hint, "; did you mean %s?", ours);
	die(EXIT_USAGE, "-m %s: unknown method%s (available: %s; for a server, give a URL as LOCK)",
	    name, ours != NULL ? hint : similar_hint(&similar, "", ""), all);
}

static noreturn void refuse_duration(const char *option, const char *text)
{
	die(EXIT_USAGE, "%s %s: invalid time; examples: 10, .5, 500ms, 10s, 2m, 1h, 1d", option,
	    text);
}

int64_t value_wait(const char *text, int negative_status)
{
	int64_t duration;

	if (!duration_parse(text, &duration))
		refuse_duration("-w", text);
	if (duration < 0)
		die(negative_status, "-w %s: the time must not be negative", text);
	return duration;
}

int64_t value_duration(const char *option, const char *text, int64_t least)
{
	int64_t duration;

	if (!duration_parse(text, &duration) || duration < 0)
		refuse_duration(option, text);
	if (duration < least)
		die(EXIT_USAGE, "%s %s: must be greater than 0", option, text);
	return duration;
}

void value_signal_names(char *text, size_t size, const char *separator)
{
	*text = '\0';
	for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
		snprintf(text + strlen(text), size - strlen(text), "%s%s", i == 0 ? "" : separator,
		    signal_names[i].name);
}

static noreturn void refuse_signal(const char *option, const char *failure, const char *text)
{
	struct similar similar = {.word = text, .length = strlen(text)};
	char all[200];

	for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
		similar_try(&similar, signal_names[i].name);
	value_signal_names(all, sizeof all, ", ");
	die(EXIT_USAGE, "%s %s: %s%s (%s, or a number)", option, text, failure,
	    similar_hint(&similar, "", ""), all);
}

int value_signal(const char *option, const char *text)
{
	int signo = parse_signal(text);

	if (signo < 0)
		refuse_signal(option, "invalid signal", text);
	return signo;
}

bool value_is_signal(const char *text)
{
	return parse_signal(text) > 0;
}

int value_on_lost(const char *text)
{
	int signo = parse_signal(text);

	if (strcmp(text, "warn") == 0)
		return LOST_WARN;
	if (signo < 0)
		refuse_signal("--on-lost", "neither \"warn\" nor a signal", text);
	return signo;
}

long value_number(const char *option, const char *text, const char *what, long least, long most)
{
	long number = text_number(text, most);

	if (number < least)
		die(EXIT_USAGE, "%s %s: invalid %s (%ld to %ld)", option, text, what, least, most);
	return number;
}

const char *value_hold(const char *text)
{
	static const char key[] = "id=";
	const char *id = text, *rest = text_after_word(text, "OK");
	size_t length;
	char *copy;

	if (rest == NULL)
		rest = text_after_word(text, "WAITING");
	if (rest != NULL)
		id = rest;
	if (strncmp(id, key, strlen(key)) == 0)
		id += strlen(key);
	length = strcspn(id, " \t\n");
	if (id[length] == '\0')
		return id;
	copy = memory_lasting(length + 1);
	if (copy != NULL) {
		memcpy(copy, id, length);
		copy[length] = '\0';
		return copy;
	}
	die(EXIT_SYSTEM, "out of memory");
}

mode_t value_mode(const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (!isdigit((unsigned char)*text) || *end != '\0' || mode > 0777)
		die(EXIT_USAGE, "--mode %s: invalid mode (octal, such as 0660)", text);
	return (mode_t)mode;
}

int value_fd(const char *option, const char *text)
{
	long fd = text_number(text, INT_MAX);

	if (fd < 0)
		die(EXIT_USAGE, "%s %s: invalid descriptor number", option, text);
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
		die(EXIT_USAGE, "%s %s: invalid size; examples: 100, 4K, 1MiB", option, text);
	if (errno != 0 || size > (unsigned long long)most / factor)
		die(EXIT_USAGE, "%s %s: exceeds the limit of %lld", option, text, (long long)most);
	return (off_t)(size * factor);
}
