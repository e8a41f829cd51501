#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "methods/file/owner_record.h"
#include "run/progress.h"
#include "report/error.h"
#include "owners/owner_text.h"
#include "report/text.h"
#include "sys/signals.h"

/* Ends the thread. */
#define WAKE (SIGRTMIN + 1)

/* NULL without a thread.  Allocated then: a start that does not wait touches no page of it. */
static struct drawing {
	pthread_t thread;
	pthread_mutex_t mutex;
	struct lock lock; /* the lock that is waited for now; under MUTEX */
	struct progress *wanted;
	int64_t began;
	sigset_t caller, watched; /* the calling thread's mask; the signals that the thread receives */
	bool drawn; /* the line is on the terminal */
	bool said;  /* the message has been printed */
} *state;

static void write_line(const char *text, size_t length)
{
	while (write(STDERR_FILENO, text, length) < 0 && errno == EINTR)
		;
}

static void erase_line(void)
{
	if (state->drawn)
		write_line("\r\033[K", 4);
	state->drawn = false;
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

static struct lock present_lock(void)
{
	struct lock lock;

	pthread_mutex_lock(&state->mutex);
	lock = state->lock;
	pthread_mutex_unlock(&state->mutex);
	return lock;
}

/* Of a wait that has lasted for WAITED: together with it in whole seconds, they are the time limit. */
static int64_t seconds_left(int64_t waited)
{
	int64_t limit = (state->wanted->deadline.at - state->began + SECOND - 1) / SECOND;

	return limit > waited / SECOND ? limit - waited / SECOND : 0;
}

/* The numbers come first: the line is cut at the terminal's right edge. */
static void line_text(const struct owners *found, char *text, size_t size)
{
	char holder[400], waited[40], left[40];
	int64_t duration = clock_now() - state->began;
	size_t turn = queue_place(found), used;

	duration_text(duration, waited, sizeof waited);
	used = (size_t)snprintf(text, size, "waited %s", waited);
	if (!state->wanted->deadline.never) {
		duration_text(seconds_left(duration) * SECOND, left, sizeof left);
		used += (size_t)snprintf(text + used, size - used, ", %s left", left);
	}
	if (turn > 0)
		used += (size_t)snprintf(text + used, size - used, ", place %zu of %zu", turn,
		    found->count - found->holders);
	if (owner_text(found, holder, sizeof holder))
		snprintf(text + used, size - used, ": %s", holder);
}

static void draw_line(void)
{
	char label[64], words[512], text[700], line[1024];
	struct lock lock = present_lock();
	struct owners found;

	if (tcgetpgrp(STDERR_FILENO) != getpgrp() || !owners_for_text(&found, &lock))
		return; /* in the background, another process has the terminal */
	line_text(&found, words, sizeof words);
	owners_forget(&found);
	snprintf(label, sizeof label, "descriptor %d", lock.fd);
	if (lock.spec->name != NULL)
		text_printable(label, sizeof label, lock.spec->name, strlen(lock.spec->name), 30);
	snprintf(text, sizeof text, "semlock: %s: %s", label, words);
	text_printable(line + 1, sizeof line - 4, text, strlen(text), terminal_columns() - 1);
	line[0] = '\r';
	memcpy(line + strlen(line), "\033[K", 4);
	write_line(line, strlen(line));
	state->drawn = true;
}

static void say_once(void)
{
	struct lock lock = present_lock();
	char holder[400], name[PATH_MAX];

	if (state->said)
		return;
	state->said = true;
	holder_text(&lock, "busy", holder, sizeof holder);
	lock_text(&lock, name, sizeof name);
	complain("%s: waiting: %s", name, holder);
}

/* Erase the line before a signal ends or stops semlock. */
static void act_on_signal(int signo)
{
	sigset_t set = signals_only(signo);

	erase_line();
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	kill(getpid(), signo);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* stopped, and continued */
}

/* Searching /proc takes long on a machine of many processes: spend at most a twentieth of the time on it. */
static void *thread_main(void *unused)
{
	int64_t next = SECOND, started;
	int signo;

	(void)unused;
	while ((signo = signals_wait(&state->watched, NULL, next)) != WAKE) {
		if (signo > 0)
			act_on_signal(signo);
		if (state->wanted->verbose) {
			say_once();
			next = INT64_MAX;
			continue;
		}
		started = clock_now();
		draw_line();
		next = 20 * (clock_now() - started);
		if (next < SECOND)
			next = SECOND;
	}
	erase_line();
	return NULL;
}

/* The thread receives those signals that would end or stop semlock by their present disposition. */
static void choose_signals(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
	struct sigaction now;

	state->watched = signals_only(WAKE);
	pthread_sigmask(SIG_SETMASK, NULL, &state->caller);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL &&
		    !sigismember(&state->caller, signals[i]))
			sigaddset(&state->watched, signals[i]);
}

/* Where sigtimedwait(2) is refused (by a sandbox, say) the thread would not learn that it is to end. */
static bool start_drawing(void)
{
	sigset_t none;

	sigemptyset(&none);
	if (signals_wait(&none, NULL, 0) < 0 && errno != EAGAIN)
		return false;
	choose_signals();
	state->began = clock_now();
	if (signals_free_thread(&state->thread, thread_main, NULL) != 0)
		return false;
	pthread_sigmask(SIG_BLOCK, &state->watched, NULL);
	return true;
}

static bool live_terminal(void)
{
	const char *kind = getenv("TERM");

	return isatty(STDERR_FILENO) && kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

void progress_waits(const struct lock *lock, void *context)
{
	struct progress *wanted = context;

	if (state != NULL) {
		pthread_mutex_lock(&state->mutex);
		state->lock = *lock;
		pthread_mutex_unlock(&state->mutex);
		return;
	}
	wanted->live = wanted->live && live_terminal();
	if (!wanted->verbose && !wanted->live)
		return;
	state = malloc(sizeof *state);
	if (state == NULL)
		return;
	*state = (struct drawing){.mutex = PTHREAD_MUTEX_INITIALIZER, .lock = *lock, .wanted = wanted};
	host_id(); /* before there is a thread, in which a fork could find it half read */
	if (!start_drawing()) {
		free(state);
		state = NULL;
	}
}

const sigset_t *progress_caller_mask(void)
{
	return state != NULL ? &state->caller : NULL;
}

void progress_end(void)
{
	sigset_t caller;

	if (state == NULL)
		return;
	pthread_kill(state->thread, WAKE);
	pthread_join(state->thread, NULL);
	caller = state->caller;
	free(state);
	state = NULL;
	pthread_sigmask(SIG_SETMASK, &caller, NULL);
}
