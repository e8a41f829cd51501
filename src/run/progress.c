/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "run/run.h"
#include "run/progress.h"
#include "report/error.h"
#include "owners/owners.h"
#include "report/text.h"
#include "sys/memory.h"
#include "sys/signals.h"

/* The line is on the terminal.  At file scope for the handler. */
static volatile sig_atomic_t drawn;
static char *line;
enum { LINE = 1024 };

/* Those that would end or stop semlock, and so leave the line behind. */
static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static void write_line(const char *text, size_t length)
{
	while (write(STDERR_FILENO, text, length) < 0 && errno == EINTR)
		;
}

static void erase_line(void)
{
	if (drawn)
		write_line("\r\033[K", 4);
	drawn = false;
}

/* In the background, another process has the terminal. */
static bool is_in_front(void)
{
	return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/* By its default, which SA_RESETHAND has restored, the second signal ends semlock, or stops it for
 * a while. */
static void erase_and_obey(int signo)
{
	bool was_drawn = drawn;
	struct sigaction again;
	int errnum = errno;

	sigaction(signo, NULL, &again);
	erase_line();
	raise(signo);
	if (was_drawn && is_in_front()) {
		drawn = true;
		write_line(line, strlen(line));
	}
	again.sa_handler = erase_and_obey;
	again.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
	sigaction(signo, &again, NULL);
	errno = errnum;
}

static void set_handlers(void (*from)(int), void (*to)(int))
{
	struct sigaction action = {.sa_handler = to,
			     .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART},
			 now;

	for (size_t i = 0; i < SIGNALS; i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == from)
			sigaction(signals[i], &action, NULL);
}

/* This process's place among the waiters, from 1; 0: not among them. */
static size_t queue_place(const struct owners *found)
{
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid == getpid())
			return i - found->holders + 1;
	return 0;
}

/* "; 2nd of 5; until 12:02:07" */
static void place_text(const struct progress *progress, const struct owners *found, char *text,
    size_t size)
{
	static const char *const suffixes[] = {"th", "st", "nd", "rd"};
	size_t place = queue_place(found), used = 0;
	const char *suffix = place % 100 / 10 == 1 || place % 10 > 3 ? "th" : suffixes[place % 10];
	char until[32];

	text[0] = '\0';
	if (place > 0)
		used = (size_t)snprintf(text, size, "; %zu%s of %zu", place, suffix,
		    found->count - found->holders);
	if (!progress->deadline.never) {
		moment_text(progress->until, until, sizeof until);
		snprintf(text + used, size - used, "; until %s", until);
	}
}

/* The line with at most COLUMNS characters of the holder's command. */
static void line_text(const struct progress *progress, const struct lock *lock,
    const struct owners *found, size_t columns, char *text, size_t size)
{
	char label[64], holder[400], place[96];

	snprintf(label, sizeof label, "descriptor %d", lock->fd);
	if (lock->spec->name != NULL)
		text_printable(label, sizeof label, lock->spec->name, strlen(lock->spec->name), 30);
	if (!owner_text(found, columns, holder, sizeof holder))
		snprintf(holder, sizeof holder, "busy");
	place_text(progress, found, place, sizeof place);
	snprintf(text, size, "semlock: %s: %s%s", label, holder, place);
}

/* On a narrow terminal the holder's command is cut first, and the place last. */
static void draw_line(const struct progress *progress, const struct lock *lock,
    const struct owners *found)
{
	char text[700], next[LINE];
	struct winsize size;
	size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
	                     ? size.ws_col - 1u
	                     : 79,
	       length;

	for (size_t command = OWNER_COMMAND_COLUMNS; command >= 8; command -= 4) {
		line_text(progress, lock, found, command, text, sizeof text);
		length = strlen(text);
		if (length <= columns)
			break;
	}
	next[0] = '\r';
	text_printable(next + 1, sizeof next - 4, text, length, columns);
	strcat(next, "\033[K");
	if (drawn && strcmp(next, line) == 0)
		return;
	strcpy(line, next);
	drawn = true; /* before it is, for a signal */
	write_line(line, strlen(line));
}

static void say_waiting(const struct progress *progress, const struct lock *lock,
    const struct owners *found)
{
	char holder[400], place[96], name[PATH_MAX];

	if (!owner_text(found, OWNER_COMMAND_COLUMNS, holder, sizeof holder))
		strcpy(holder, "busy");
	place_text(progress, found, place, sizeof place);
	lock_text(lock, name, sizeof name);
	complain("%s: waiting: %s%s", name, holder, place);
}

/* After the first message a log file gets one after 10 s, 1 and 5 minutes, and every 10 from then
 * on. */
static int64_t next_message(const struct progress *progress)
{
	static const int64_t steps[] = {10 * SECOND, 60 * SECOND, 300 * SECOND};
	const int64_t last = steps[2], pace = 600 * SECOND, waited = clock_now() - progress->since;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (waited < steps[i])
			return progress->since + steps[i];
	return progress->since + last + ((waited - last) / pace + 1) * pace;
}

void progress_begins(struct progress *progress)
{
	const char *terminal = getenv("TERM");

	if (progress->begun)
		return;
	progress->begun = true;
	progress->since = progress->verbose ? clock_now() : 0;
	progress->live = progress->live && isatty(STDERR_FILENO) && terminal != NULL &&
	                 *terminal != '\0' && strcmp(terminal, "dumb") != 0 &&
	                 (line = memory_lasting(LINE)) != NULL;
	progress->due = progress->verbose || progress->live || progress->notes_place
	                    ? clock_now() + progress->delay
	                    : INT64_MAX;
	if (!progress->deadline.never)
		progress->until = clock_realtime() + deadline_left(&progress->deadline);
	if (progress->live)
		set_handlers(SIG_DFL, erase_and_obey);
}

/* Searching /proc takes long on a machine of many processes: spend at most a twentieth of the time
 * on it; processor time, or on a busy machine the line would be a minute old. */
int64_t progress_tick(struct progress *progress, const struct lock *lock)
{
	const int64_t began = clock_now();
	int64_t used;
	struct owners found = {.count = 0};

	if (!progress->begun || progress->due == INT64_MAX)
		return INT64_MAX;
	if (began < progress->due)
		return progress->due - began;
	used = clock_processor();
	wakeup_off(); /* its signal would interrupt the search */
	if ((progress->verbose || progress->notes_place || is_in_front()) &&
	    owners_for_text(&found, lock)) {
		if (progress->notes_place)
			log_place(queue_place(&found));
		progress->notes_place = false;
		if (progress->live && is_in_front())
			draw_line(progress, lock, &found);
	}
	if (progress->verbose)
		say_waiting(progress, lock, &found);
	owners_forget(&found);
	if (progress->live)
		progress->due = clock_now() + 20 * (clock_processor() - used);
	else
		progress->due = progress->verbose ? next_message(progress) : INT64_MAX;
	return progress->verbose ? progress->due - clock_now() : INT64_MAX;
}

void progress_ends(struct progress *progress)
{
	if (!progress->live || !progress->begun)
		return;
	erase_line();
	set_handlers(erase_and_obey, SIG_DFL);
}
