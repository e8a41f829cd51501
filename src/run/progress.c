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

#include "run/progress.h"
#include "report/error.h"
#include "owners/owner_text.h"
#include "report/text.h"
#include "sys/wakeup.h"

/* The line is on the terminal.  At file scope for the handler. */
static volatile sig_atomic_t drawn;

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

/* By its default, which SA_RESETHAND has restored, the second signal ends semlock, or stops it for a while. */
static void erase_and_obey(int signo)
{
	struct sigaction again;
	int errnum = errno;

	sigaction(signo, NULL, &again);
	erase_line();
	raise(signo);
	again.sa_handler = erase_and_obey;
	again.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
	sigaction(signo, &again, NULL);
	errno = errnum;
}

static void set_handlers(void (*from)(int), void (*to)(int))
{
	struct sigaction action = {.sa_handler = to, .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART}, now;

	for (size_t i = 0; i < SIGNALS; i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == from)
			sigaction(signals[i], &action, NULL);
}

static size_t terminal_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

static void duration_text(int64_t duration, char *text, size_t size)
{
	long long seconds = duration / SECOND;

	if (seconds < 60)
		snprintf(text, size, "%lld s", seconds);
	else if (seconds < 3600)
		snprintf(text, size, "%lld min %02lld s", seconds / 60, seconds % 60);
	else
		snprintf(text, size, "%lld h %02lld min", seconds / 3600, seconds / 60 % 60);
}

/* This process's place among the waiters, from 1; 0: not among them. */
static size_t queue_place(const struct owners *found)
{
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid == getpid())
			return i - found->holders + 1;
	return 0;
}

/* Of a wait that has lasted for WAITED: together with it in whole seconds, they are the time limit. */
static int64_t seconds_left(const struct progress *progress, int64_t waited)
{
	int64_t limit = (progress->deadline.at - progress->began + SECOND - 1) / SECOND;

	return limit > waited / SECOND ? limit - waited / SECOND : 0;
}

/* The numbers come first: the line is cut at the terminal's right edge. */
static void line_text(const struct progress *progress, const struct owners *found, char *text, size_t size)
{
	char holder[400], waited[40], left[40];
	int64_t duration = clock_now() - progress->began;
	size_t turn = queue_place(found), used;

	duration_text(duration, waited, sizeof waited);
	used = (size_t)snprintf(text, size, "waited %s", waited);
	if (!progress->deadline.never) {
		duration_text(seconds_left(progress, duration) * SECOND, left, sizeof left);
		used += (size_t)snprintf(text + used, size - used, ", %s left", left);
	}
	if (turn > 0)
		used += (size_t)snprintf(text + used, size - used, ", place %zu of %zu", turn,
		    found->count - found->holders);
	if (owner_text(found, holder, sizeof holder))
		snprintf(text + used, size - used, ": %s", holder);
}

static void draw_line(const struct progress *progress, const struct lock *lock)
{
	char label[64], words[512], text[700], line[1024];
	struct owners found;

	if (tcgetpgrp(STDERR_FILENO) != getpgrp() || !owners_for_text(&found, lock))
		return; /* in the background, another process has the terminal */
	line_text(progress, &found, words, sizeof words);
	owners_forget(&found);
	snprintf(label, sizeof label, "descriptor %d", lock->fd);
	if (lock->spec->name != NULL)
		text_printable(label, sizeof label, lock->spec->name, strlen(lock->spec->name), 30);
	snprintf(text, sizeof text, "semlock: %s: %s", label, words);
	text_printable(line + 1, sizeof line - 4, text, strlen(text), terminal_columns() - 1);
	line[0] = '\r';
	memcpy(line + strlen(line), "\033[K", 4);
	drawn = true; /* before it is, for a signal */
	write_line(line, strlen(line));
}

static void say_waiting(const struct lock *lock)
{
	char holder[400], name[PATH_MAX];

	holder_text(lock, "busy", holder, sizeof holder);
	lock_text(lock, name, sizeof name);
	complain("%s: waiting: %s", name, holder);
}

static bool live_terminal(void)
{
	const char *kind = getenv("TERM");

	return isatty(STDERR_FILENO) && kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

void progress_begins(struct progress *progress)
{
	if (progress->began != 0)
		return;
	progress->live = progress->live && live_terminal();
	progress->began = clock_now();
	progress->due = progress->verbose || progress->live ? progress->began + SECOND : INT64_MAX;
	if (progress->live)
		set_handlers(SIG_DFL, erase_and_obey);
}

/* Searching /proc takes long on a machine of many processes: spend at most a twentieth of the time on it. */
int64_t progress_tick(struct progress *progress, const struct lock *lock)
{
	int64_t started, pause;

	if (progress->began == 0 || progress->due == INT64_MAX)
		return INT64_MAX;
	started = clock_now();
	if (started < progress->due)
		return progress->due - started;
	wakeup_off(); /* a tick would interrupt the search */
	if (progress->verbose) {
		say_waiting(lock);
		progress->due = INT64_MAX;
		return INT64_MAX;
	}
	draw_line(progress, lock);
	pause = 20 * (clock_now() - started);
	if (pause < SECOND)
		pause = SECOND;
	progress->due = clock_now() + pause;
	return pause;
}

void progress_ends(struct progress *progress)
{
	if (!progress->live || progress->began == 0)
		return;
	erase_line();
	set_handlers(erase_and_obey, SIG_DFL);
}
