/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "sys/terminal.h"

/* ---- the observer's line ---- */

enum { LINE = 1024 };

/* What the observer tells the waiter, in a page that they share. */
struct sight {
	volatile sig_atomic_t drawn; /* the line, or a part of it, is on the terminal */
	bool shown;                  /* the first look is over: its result was written, or there was
	                              * nothing to write */
	/* A signal may end the observer while it writes this, so the waiter checks each PID. */
	struct known_members known;
};

/* What the observer knows of the wait. */
struct view {
	struct show show;
	struct lock lock; /* as for --who: not open */
	struct search_terms terms;
	pid_t waiter;     /* our parent */
	pid_t foreground; /* the waiter's process group: the line is drawn while it is in the
	                   * foreground */
	int64_t since;    /* when the wait began, on clock_now()'s clock */
	int64_t until;    /* the wait's deadline, in ns after 1970 */
	bool again;       /* an earlier observer has shown this wait */
	int terminal;     /* from terminal_open() */
	char line[LINE];  /* as it was drawn */
};

/* The shared page, at file scope for the signal handlers of both processes.  NULL: there is
 * none. */
static struct sight *sight;

/* Erase the line.  On a stopped terminal (Ctrl-S) it stays.  Block SIGTTOU, which would stop a
 * waiter that writes to the terminal from the background. */
static void erase_line(void)
{
	static const char erasure[] = "\r\033[K";
	const sigset_t only = signals_only(SIGTTOU);
	sigset_t before;
	int terminal;

	if (sight == NULL || !sight->drawn)
		return;
	terminal = terminal_open();
	pthread_sigmask(SIG_BLOCK, &only, &before);
	terminal_put(terminal, erasure, strlen(erasure));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (terminal >= 0)
		close(terminal);
	sight->drawn = false;
}

/* May the line be drawn?  Only while the waiter's process group is in the foreground of the
 * terminal, and the waiter is not stopped. */
static bool may_draw(const struct view *view)
{
	return tcgetpgrp(STDERR_FILENO) == view->foreground && !process_stopped(view->waiter);
}

/* The waiter's place among the waiters, from 1; 0: it is not among them. */
static size_t queue_place(const struct owners *found)
{
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid == found->asker)
			return i - found->holders + 1;
	return 0;
}

/* "; 2nd of 5; until 12:02:07" */
static void place_text(const struct view *view, const struct owners *found, bool until_too,
    char *text, size_t size)
{
	static const char suffixes[][3] = {"th", "st", "nd", "rd"};
	size_t place = queue_place(found), used = 0;
	const char *suffix = place % 100 / 10 == 1 || place % 10 > 3 ? "th" : suffixes[place % 10];
	char until[32];

	text[0] = '\0';
	if (place > 0)
		used = (size_t)snprintf(text, size, "; %zu%s of %zu", place, suffix,
		    found->count - found->holders);
	if (!view->show.deadline.never && until_too) {
		moment_text(view->until, until, sizeof until);
		snprintf(text + used, size - used, "; until %s", until);
	}
}

/* How much room each part of the line has. */
struct line_room {
	struct owner_room holder;
	size_t words; /* columns for all about the holder */
	size_t label; /* columns of the lock's name; 0: it is left out */
	bool until;
};

enum { LABEL_COLUMNS = 160, ALL_COLUMNS = OWNER_TEXT };

/* The beginning of a URL or path says where the lock is, its end which lock it is: cut the
 * middle. */
static void label_text(const struct lock_spec *spec, size_t columns, char *text, size_t size)
{
	if (spec->name != NULL)
		text_cut_middle(text, size, spec->name, strlen(spec->name), columns);
	else
		snprintf(text, size, "descriptor %d", spec->fd);
}

static void line_text(const struct view *view, const struct owners *found,
    const struct line_room *room, char *text, size_t size)
{
	char label[4 * LABEL_COLUMNS] = "", holder[OWNER_TEXT], words[OWNER_TEXT] = "", place[96];
	size_t used = 0;

	if (!owner_text(found, &room->holder, holder, sizeof holder))
		snprintf(holder, sizeof holder, "busy");
	text_printable(words, sizeof words, holder, strlen(holder), room->words);
	place_text(view, found, room->until, place, sizeof place);
	if (room->label > 0) {
		label_text(view->lock.spec, room->label, label, sizeof label);
		used = (size_t)snprintf(text, size, "semlock: %s: ", label);
	}
	/* without WORDS, leave out the semicolon with which PLACE begins */
	snprintf(text + used, size - used, "%s%s", words,
	    words[0] == '\0' && place[0] != '\0' ? place + strlen("; ") : place);
}

/* Shorten *PART by one step, or to REST if it would become shorter than LEAST.  Returns false if it
 * was at REST already. */
static bool cut(size_t *part, size_t least, size_t rest)
{
	enum { STEP = 4 };

	if (*part <= rest)
		return false;
	*part = *part >= least + STEP ? *part - STEP : rest;
	return true;
}

static bool leave_out(bool *part)
{
	const bool was_in = *part;

	*part = false;
	return was_in;
}

/* Cut what a reader misses least: the note, the command's arguments, the host, the middle of the
 * lock's name.  On a still narrower terminal, only the place in the queue remains.  Returns false
 * if nothing is left to cut. */
static bool cut_line(struct line_room *room)
{
	enum {
		SHORT_COMMAND = 8,
		SHORT_LABEL = 20,
		SHORTEST_LABEL = 8,
		LEAST_HOST = 4,
		LEAST_WORDS = 8
	};
	struct owner_room *holder = &room->holder;

	return cut(&holder->note, SHORT_COMMAND, 0) || leave_out(&holder->age) ||
	       cut(&holder->command, SHORT_COMMAND, SHORT_COMMAND) ||
	       cut(&holder->host, LEAST_HOST, 0) || cut(&room->label, SHORT_LABEL, SHORT_LABEL) ||
	       cut(&holder->command, 1, 0) || leave_out(&holder->since) ||
	       cut(&room->label, SHORTEST_LABEL, SHORTEST_LABEL) || leave_out(&room->until) ||
	       cut(&room->words, LEAST_WORDS, 0) || cut(&room->label, 1, 0);
}

static void fit_line(const struct view *view, const struct owners *found, size_t columns,
    char *text, size_t size)
{
	const struct lock_spec *spec = view->lock.spec;
	const struct owner *holder = found->holders == 0 ? NULL : found->list;
	struct line_room room = {.holder = OWNER_WHOLE,
	    .words = ALL_COLUMNS,
	    .label = spec->name == NULL ? 1 : text_columns(spec->name, LABEL_COLUMNS),
	    .until = true};

	/* skip steps that would cut nothing */
	room.holder.note = holder == NULL ? 0 : text_columns(holder->note, NOTE_SIZE);
	room.holder.host = holder == NULL ? 0 : text_columns(holder->host, sizeof holder->host);
	do
		line_text(view, found, &room, text, size);
	while (text_columns(text, size) > columns && cut_line(&room));
}

static void draw_line(struct view *view, const struct owners *found)
{
	enum { FREE = 2 }; /* for the "^C" that the terminal echoes */
	char text[OWNER_TEXT + 4 * LABEL_COLUMNS + 100], next[LINE];
	size_t columns = terminal_columns(STDERR_FILENO), length;
	const bool was_drawn = sight->drawn;

	if (columns == 0)
		columns = 80;
	columns = columns > FREE ? columns - FREE : 1;
	fit_line(view, found, columns, text, sizeof text);
	next[0] = '\r';
	text_printable(next + 1, sizeof next - 4, text, strlen(text), columns);
	strcat(next, "\033[K");
	if (was_drawn && strcmp(next, view->line) == 0)
		return;
	sight->drawn = true; /* before the write, because the waiter may kill us at any moment */
	length = terminal_put(view->terminal, next, strlen(next));
	/* if the terminal took only a part, the next look must redraw the line */
	strcpy(view->line, length == strlen(next) ? next : "");
	if (length == 0)
		sight->drawn = was_drawn;
}

static void say_waiting(const struct view *view, const struct owners *found)
{
	char holder[OWNER_TEXT], place[96], name[PATH_MAX], way_out[WAY_OUT];

	if (!owner_text(found, &OWNER_WHOLE, holder, sizeof holder))
		strcpy(holder, "busy");
	place_text(view, found, true, place, sizeof place);
	lock_text(&view->lock, name, sizeof name);
	way_out_text(found, &view->lock, way_out, sizeof way_out);
	complain("%s: waiting: %s%s%s", name, holder, place, way_out);
}

/* ---- the observer ---- */

/* Return when the next message is due, on clock_now()'s clock.  The messages may go to a log file:
 * so after the first one, they come at 10 s, 1 and 5 minutes of waiting, then every 10 minutes. */
static int64_t next_message(const struct view *view)
{
	static const int64_t steps[] = {10 * SECOND, 60 * SECOND, 300 * SECOND};
	const int64_t last = steps[2], pace = 600 * SECOND, waited = clock_now() - view->since;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (waited < steps[i])
			return view->since + steps[i];
	return view->since + last + ((waited - last) / pace + 1) * pace;
}

/* Tell the waiter that the look is over, and which processes hold the lock according to FOUND.
 * NULL: there was nothing to write. */
static void note_sight(const struct owners *found)
{
	const struct owner *holder;

	sight->shown = true;
	sight->known.count = 0;
	if (found == NULL || found->holders != 1 || found->list[0].nmembers > KNOWN_MOST)
		return;
	holder = &found->list[0];
	for (size_t i = 0; i < holder->nmembers; i++)
		sight->known.pids[i] = holder->members[i].pid;
	sight->known.count = holder->nmembers;
}

/* Look once, and write.  Returns the ns until the next look.  Searching /proc is slow on a machine
 * with many processes: spend at most a twentieth of the time on it.  Count processor time: if
 * elapsed time counted, a busy machine would show a line that is a minute old. */
static int64_t observer_look(struct view *view)
{
	const int64_t used = clock_processor();
	struct owners found = {.count = 0};
	int64_t pause;

	if (!view->show.messages && !may_draw(view)) {
		note_sight(NULL);
		return SECOND;
	}
	CRASH_POINT("observer.looks");
	owners_for_text(&found, &view->lock, &view->terms);
	notes_read(&found);
	if (view->show.messages)
		say_waiting(view, &found);
	else if (may_draw(view))
		draw_line(view, &found);
	note_sight(&found);
	owners_forget(&found);
	if (view->show.messages)
		return next_message(view) - clock_now();
	pause = 20 * (clock_processor() - used);
	return pause < SECOND ? SECOND : pause;
}

static void sleep_for(int64_t time)
{
	const struct timespec rest = {(time_t)(time / SECOND), (long)(time % SECOND)};

	/* SIGCONT after a stop interrupts the sleep, so that the line is drawn at once */
	nanosleep(&rest, NULL);
}

/* The observer must not keep the lock, or a ticket, alive: close its descriptors. */
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
	/* give the descriptor its number back, by which messages name it */
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

static void erase_and_end(int signo)
{
	(void)signo;
	erase_line();
	_exit(0);
}

/* The waiter's PID, at file scope for the signal handler. */
static pid_t observed;

/* SIGCONT has two reasons: the waiter sends it when it goes on after a stop, and the kernel sends
 * it when the waiter has ended.  It reaches a stopped observer, too. */
static void end_with_waiter(int signo)
{
	if (getppid() != observed)
		erase_and_end(signo);
}

_Noreturn static void observe(struct view *view, const struct lock *lock)
{
	sigset_t blocked;

	observed = view->waiter;
	/* block all other signals: the waiter handles them, and SIGTTOU would stop a write to the
	 * terminal */
	sigfillset(&blocked);
	set_handler(SIGTERM, erase_and_end, &blocked);
	set_handler(SIGCONT, end_with_waiter, &blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	if (getppid() != view->waiter)
		_exit(0);

	prctl(PR_SET_NAME, OBSERVER_NAME);
	close_locks(lock);
	view->terminal = terminal_open();
	view->lock = LOCK_OF(lock->spec);
	view->lock.server.text = lock->server.text;
	view->terms = SEARCH_TO_OBSERVE;
	view->terms.asker = view->show.asker > 0 ? view->show.asker : view->waiter;
	if (view->again && view->show.messages)
		sleep_for(next_message(view) - clock_now());
	else if (!view->again)
		sleep_for(view->show.delay);
	for (;;)
		sleep_for(observer_look(view));
}

/* ---- the waiter ---- */

/* At file scope for the signal handler. */
static volatile sig_atomic_t observer; /* the observer's PID; 0: there is none */
/* The lock whose wait is shown, and when the first wait began, on clock_now()'s clock. */
static const struct lock *shown;
static int64_t waits_since;
/* when the first look should be over, if the machine is not too busy */
static int64_t look_expected;

/* PID was sent SIGKILL, or SIGSTOP (OPTIONS: WUNTRACED): wait until it has ended or stopped, but at
 * most 50 ms.  A file system that does not answer may keep the observer in the kernel; that must
 * not keep the waiter from its lock, its deadline or a signal.  Returns waitpid(2)'s status, or -1
 * if the process still runs. */
static int await_observer(pid_t pid, int options)
{
	const struct deadline patience = deadline_after(50 * MILLISECOND);
	struct timespec pause = {0, MILLISECOND / 20};
	int status = -1;

	while (waitpid(pid, &status, options | WNOHANG) <= 0 && deadline_left(&patience) > 0) {
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < MILLISECOND)
			pause.tv_nsec *= 2;
	}
	return status;
}

/* The waiter erases the line itself: on a busy machine, the observer might not run for a while. */
static void end_observer(void)
{
	const pid_t pid = (pid_t)observer;

	observer = 0;
	if (pid != 0) {
		kill(pid, SIGKILL);
		await_observer(pid, 0);
	}
	erase_line();
}

static void stop_observer(void)
{
	const pid_t pid = (pid_t)observer;
	int status;

	if (pid == 0)
		return;
	kill(pid, SIGSTOP);
	status = await_observer(pid, WUNTRACED);
	if (status != -1 && !WIFSTOPPED(status))
		observer = 0; /* reaped: its PID may be another process's now */
	erase_line();
}

/* Erase the line, then raise the signal again: SA_RESETHAND has restored its default action, which
 * ends semlock or stops it. */
static void observer_obey(int signo)
{
	const sigset_t only = signals_only(signo);
	struct sigaction again;
	int errnum = errno;

	sigaction(signo, NULL, &again);
	if (signo == SIGTSTP)
		stop_observer();
	else
		end_observer();
	/* SA_NODEFER leaves SIGNO unblocked, but ThreadSanitizer blocks all signals in a
	 * handler. */
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	raise(signo);
	if (observer != 0)
		kill((pid_t)observer, SIGCONT);
	again.sa_handler = observer_obey;
	again.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
	sigaction(signo, &again, NULL);
	errno = errnum;
}

static void change_handler(int signo, void (*from)(int), void (*to)(int))
{
	struct sigaction action = {.sa_handler = to};
	struct sigaction now;

	action.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
	if (sigaction(signo, NULL, &now) == 0 && now.sa_handler == from)
		sigaction(signo, &action, NULL);
}

/* Without a handler, these signals would end or stop semlock with the line still on the
 * terminal. */
static void set_handlers(void (*from)(int), void (*to)(int))
{
	for (int i = 0; i < ENDING_SIGNALS; i++)
		change_handler(ending_signals[i], from, to);
	change_handler(SIGTSTP, from, to);
}

void observer_end(void)
{
	if (shown == NULL)
		return;
	end_observer();
	set_handlers(observer_obey, SIG_DFL);
}

struct show show_of(const struct request *request)
{
	const bool in_own_words = !request->as_flock;

	return (struct show){
	    .messages = in_own_words && request->verbose,
	    .line = in_own_words && !request->verbose && !request->quiet,
	    .deadline = request->wait >= 0 ? deadline_after(request->wait) : deadline_never(),
	    /* Most holders that --replace or --toggle signals end within a second, and such a short
	     * wait needs no line.  And if many calls begin at once, their looks must not delay each
	     * other. */
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
	if (sight == NULL)
		return;
	view.again = shown == lock && sight->shown;
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
	set_handlers(SIG_DFL, observer_obey);
}
