/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "owners/owners.h"
#include "report/error.h"
#include "report/text.h"
#include "run/notes.h"
#include "run/observer.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"

/* ---- the observer's line ---- */

enum { LINE = 1024 };

/* For the observer's handlers. */
static volatile sig_atomic_t drawn;

/* What the observer tells the waiter: a page that they share. */
struct sight {
	bool shown; /* what the first look found was written, or is not to be */
	/* A signal may end the observer while it writes this: a hint, that the waiter proves. */
	struct known_members known;
};

/* What the observer knows of the wait. */
struct view {
	struct show show;
	struct lock lock; /* as --who has it: not open */
	struct search_terms terms;
	pid_t waiter;        /* our parent */
	pid_t foreground;    /* the waiter's process group: while it has the terminal, the line is
	                        drawn */
	int64_t since;       /* when the wait began, on clock_now()'s clock */
	int64_t until;       /* its deadline, in ns after 1970 */
	bool again;          /* another observer has shown this wait before */
	struct sight *sight; /* NULL: no memory */
	char line[LINE];     /* as it was drawn; not static: that is a page more for every start */
};

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

static void erase_and_end(int signo)
{
	(void)signo;
	erase_line();
	_exit(0);
}

/* The waiter stops, and this process with it. */
static void erase_and_stop(int signo)
{
	int errnum = errno;

	(void)signo;
	erase_line();
	raise(SIGSTOP);
	errno = errnum;
}

/* In the background, another process has the terminal; a waiter that is stopped shows nothing. */
static bool may_draw(const struct view *view)
{
	struct procfs_stat stat;

	return tcgetpgrp(STDERR_FILENO) == view->foreground &&
	       (!process_stat(view->waiter, &stat) || stat.state != 'T');
}

/* The waiter's place among those that wait, from 1; 0: not among them. */
static size_t queue_place(const struct owners *found)
{
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid == found->asker)
			return i - found->holders + 1;
	return 0;
}

/* "; 2nd of 5; until 12:02:07" */
static void place_text(const struct view *view, const struct owners *found, char *text, size_t size)
{
	static const char suffixes[][3] = {"th", "st", "nd", "rd"};
	size_t place = queue_place(found), used = 0;
	const char *suffix = place % 100 / 10 == 1 || place % 10 > 3 ? "th" : suffixes[place % 10];
	char until[32];

	text[0] = '\0';
	if (place > 0)
		used = (size_t)snprintf(text, size, "; %zu%s of %zu", place, suffix,
		    found->count - found->holders);
	if (!view->show.deadline.never) {
		moment_text(view->until, until, sizeof until);
		snprintf(text + used, size - used, "; until %s", until);
	}
}

/* The line with at most COLUMNS characters of the holder's command, and NOTE_COLUMNS of its
 * note. */
static void line_text(const struct view *view, const struct owners *found, size_t columns,
    size_t note_columns, char *text, size_t size)
{
	const struct lock_spec *spec = view->lock.spec;
	char label[64], holder[OWNER_TEXT], place[96];

	snprintf(label, sizeof label, "descriptor %d", spec->fd);
	if (spec->name != NULL)
		text_printable(label, sizeof label, spec->name, strlen(spec->name), 30);
	if (!owner_text(found, columns, note_columns, holder, sizeof holder))
		snprintf(holder, sizeof holder, "busy");
	place_text(view, found, place, sizeof place);
	snprintf(text, size, "semlock: %s: %s%s", label, holder, place);
}

/* On a narrow terminal the holder's command and its note are cut, in turns, and the place last. */
static void fit_line(const struct view *view, const struct owners *found, size_t columns,
    char *text, size_t size)
{
	enum { SHORT = 20, LEAST = 8, STEP = 4 };
	size_t command = OWNER_COMMAND_COLUMNS;
	size_t note = found->holders == 0 ? 0 : strlen(found->list[0].note);

	for (;;) {
		line_text(view, found, command, note, text, size);
		if (strlen(text) <= columns)
			return;
		if (command > SHORT)
			command -= STEP;
		else if (note > SHORT)
			note -= STEP;
		else if (command > LEAST)
			command -= STEP;
		else if (note > LEAST)
			note -= STEP;
		else
			return;
	}
}

static void draw_line(struct view *view, const struct owners *found)
{
	char text[OWNER_TEXT + 300], next[LINE];
	struct winsize size;
	size_t columns = 79;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		columns = size.ws_col - 1u;
	fit_line(view, found, columns, text, sizeof text);
	next[0] = '\r';
	text_printable(next + 1, sizeof next - 4, text, strlen(text), columns);
	strcat(next, "\033[K");
	if (drawn && strcmp(next, view->line) == 0)
		return;
	strcpy(view->line, next);
	drawn = true; /* before it is, for a signal */
	write_line(next, strlen(next));
}

static void say_waiting(const struct view *view, const struct owners *found)
{
	char holder[OWNER_TEXT], place[96], name[PATH_MAX];

	if (!owner_text(found, OWNER_COMMAND_COLUMNS, NOTE_SIZE, holder, sizeof holder))
		strcpy(holder, "busy");
	place_text(view, found, place, sizeof place);
	lock_text(&view->lock, name, sizeof name);
	complain("%s: waiting: %s%s", name, holder, place);
}

/* ---- the observer ---- */

/* After the first message a log file gets one after 10 s, 1 and 5 minutes, and every 10 from then
 * on.  Returns when, on clock_now()'s clock. */
static int64_t next_message(const struct view *view)
{
	static const int64_t steps[] = {10 * SECOND, 60 * SECOND, 300 * SECOND};
	const int64_t last = steps[2], pace = 600 * SECOND, waited = clock_now() - view->since;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (waited < steps[i])
			return view->since + steps[i];
	return view->since + last + ((waited - last) / pace + 1) * pace;
}

/* FOUND is what was written; NULL: nothing is to be. */
static void note_sight(struct sight *sight, const struct owners *found)
{
	const struct owner *holder;

	if (sight == NULL)
		return;
	sight->shown = true;
	sight->known.count = 0;
	if (found == NULL || found->holders != 1 || found->list[0].nmembers > KNOWN_MOST)
		return;
	holder = &found->list[0];
	for (size_t i = 0; i < holder->nmembers; i++)
		sight->known.pids[i] = holder->members[i].pid;
	sight->known.count = holder->nmembers;
}

/* Look once, and write.  Returns the time until the next look, in ns.  Searching /proc takes long
 * on a machine of many processes: spend at most a twentieth of the time on it; processor time, or
 * on a busy machine the line would be a minute old. */
static int64_t look(struct view *view)
{
	const int64_t used = clock_processor();
	struct owners found = {.count = 0};
	int64_t pause;

	if (!view->show.messages && !may_draw(view)) {
		note_sight(view->sight, NULL);
		return SECOND;
	}
	CRASH_POINT("observer.looks");
	owners_for_text(&found, &view->lock, &view->terms);
	notes_read(&found);
	if (view->show.messages)
		say_waiting(view, &found);
	else if (may_draw(view))
		draw_line(view, &found);
	note_sight(view->sight, &found);
	owners_forget(&found);
	if (view->show.messages)
		return next_message(view) - clock_now();
	pause = 20 * (clock_processor() - used);
	return pause < SECOND ? SECOND : pause;
}

static void sleep_for(int64_t time)
{
	const struct timespec rest = {(time_t)(time / SECOND), (long)(time % SECOND)};

	nanosleep(&rest, NULL); /* after a stop, there is a line to be drawn at once */
}

/* The descriptor of the lock, or of the queue, would keep them. */
static void close_locks(const struct lock *lock)
{
	char path[40];
	int file = -1;

	if (lock->spec->name == NULL) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", lock->spec->fd);
		file = open(path, O_PATH | O_CLOEXEC);
		if (file >= 0)
			dup2(file, STDIN_FILENO);
	}
	descriptor_close_others();
	close(STDOUT_FILENO);
	/* Its number is a part of its name. */
	if (file >= 0)
		dup2(STDIN_FILENO, lock->spec->fd);
}

static void set_handler(int signo, void (*handler)(int), sigset_t *blocked)
{
	struct sigaction action = {.sa_handler = handler};

	sigfillset(&action.sa_mask);
	sigaction(signo, &action, NULL);
	sigdelset(blocked, signo);
}

_Noreturn static void observe(struct view *view, const struct lock *lock)
{
	sigset_t blocked;

	/* all others: the waiter heeds them, and SIGTTOU would stop a write to the terminal */
	sigfillset(&blocked);
	set_handler(SIGTERM, erase_and_end, &blocked);
	set_handler(SIGTSTP, erase_and_stop, &blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != view->waiter)
		_exit(0);

	prctl(PR_SET_NAME, OBSERVER_NAME);
	close_locks(lock);
	view->lock = LOCK_OF(lock->spec);
	view->lock.server.text = lock->server.text;
	view->terms = SEARCH_TO_OBSERVE;
	view->terms.asker = view->show.asker > 0 ? view->show.asker : view->waiter;
	if (view->again && view->show.messages)
		sleep_for(next_message(view) - clock_now());
	else if (!view->again)
		sleep_for(view->show.delay);
	for (;;)
		sleep_for(look(view));
}

/* ---- the waiter ---- */

/* At file scope for the handler. */
static volatile sig_atomic_t observer; /* its PID; 0: there is none */
/* What it shows, and since when the wait lasts, on clock_now()'s clock. */
static const struct lock *shown;
static int64_t waits_since;
static struct sight *sight;   /* of SHOWN; NULL: there is none */
static int64_t look_expected; /* the first look is over by then, if the machine is not too busy */

/* Those that would end or stop semlock, and so leave the line behind. */
static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static void end_observer(void)
{
	const pid_t pid = (pid_t)observer;

	if (pid == 0)
		return;
	observer = 0;
	kill(pid, SIGTERM);
	kill(pid, SIGCONT);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* The observer takes its line away, and stops. */
static void stop_observer(void)
{
	const pid_t pid = (pid_t)observer;
	int status;

	if (pid == 0)
		return;
	kill(pid, SIGTSTP);
	if (waitpid(pid, &status, WUNTRACED) == pid && !WIFSTOPPED(status))
		observer = 0; /* reaped: its PID may be another process's now */
}

/* The line goes first.  By its default, which SA_RESETHAND has restored, the second signal ends
 * semlock, or stops it for a while. */
static void obey(int signo)
{
	const sigset_t only = signals_only(signo);
	struct sigaction again;
	int errnum = errno;

	sigaction(signo, NULL, &again);
	if (signo == SIGTSTP)
		stop_observer();
	else
		end_observer();
	/* SA_NODEFER leaves it unblocked; but ThreadSanitizer blocks all in a handler. */
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	raise(signo);
	if (observer != 0)
		kill((pid_t)observer, SIGCONT);
	again.sa_handler = obey;
	again.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
	sigaction(signo, &again, NULL);
	errno = errnum;
}

static void set_handlers(void (*from)(int), void (*to)(int))
{
	struct sigaction action = {.sa_handler = to};
	struct sigaction now;

	action.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
	for (size_t i = 0; i < SIGNALS; i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == from)
			sigaction(signals[i], &action, NULL);
}

void observer_end(void)
{
	if (shown == NULL)
		return;
	end_observer();
	set_handlers(obey, SIG_DFL);
}

struct show show_of(const struct request *request)
{
	const bool in_own_words = !request->as_flock;

	return (struct show){
	    .messages = in_own_words && request->verbose,
	    .line = in_own_words && !request->verbose && !request->quiet,
	    .deadline = request->wait >= 0 ? deadline_after(request->wait) : deadline_never(),
	    /* Most holders that are stopped end within a second.  A shorter wait than the other
	     * one needs no line, and many that begin at once do not keep each other from it. */
	    .delay = request->preempt != PREEMPT_NOT ? SECOND : 50 * MILLISECOND,
	};
}

static bool is_terminal(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDERR_FILENO) && terminal != NULL && *terminal != '\0' &&
	       strcmp(terminal, "dumb") != 0;
}

bool observer_shows(const struct show *show)
{
	return show->messages || (show->line && is_terminal());
}

static struct sight *share_sight(void)
{
	void *page = mmap(NULL, sizeof(struct sight), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

const struct known_members *observer_found(const struct lock *lock)
{
	return shown == lock && sight != NULL ? &sight->known : NULL;
}

bool observer_was_slow(const struct lock *lock)
{
	return shown == lock && sight != NULL && !sight->shown && clock_now() > look_expected;
}

void observer_start(const struct show *show, const struct lock *lock)
{
	struct view view = {
	    .show = *show,
	    .waiter = getpid(),
	    .foreground = getpgrp(),
	};
	pid_t pid;

	observer_end();
	view.show.line = show->line && is_terminal();
	if (!observer_shows(show))
		return;
	if (waits_since == 0)
		waits_since = clock_now();
	if (sight == NULL)
		sight = share_sight();
	else if (shown != lock)
		*sight = (struct sight){0};
	view.sight = sight;
	view.again = shown == lock && (sight == NULL || sight->shown);
	if (!view.again)
		look_expected = clock_now() + show->delay + SECOND / 2;
	shown = lock;
	view.since = waits_since;
	if (!show->deadline.never)
		view.until = clock_realtime() + deadline_left(&show->deadline);

	pid = fork();
	if (pid == 0)
		observe(&view, lock);
	if (pid < 0)
		return;
	observer = pid;
	set_handlers(SIG_DFL, obey);
}
