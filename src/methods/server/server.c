/* SPDX-License-Identifier: MIT */
/* Locks on a server, named by a URL: a helper acquires, keeps and releases them.  See
 * locksmith.h. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/text.h"
#include "lock/lock.h"
#include "methods/server/lease.h"
#include "methods/server/locksmith.h"
#include "methods/server/server.h"
#include "sys/crash_points.h"
#include "sys/signals.h"

/* When -w is over, semlock waits GRACE longer for the helper's message.  The helper needs some
 * milliseconds of CPU time for it, and no answer from the server.  With -n, or a short -w, the
 * helper has TRY_LIMIT to reach the server.  In ns. */
#define GRACE SECOND
#define TRY_LIMIT (14 * SECOND / 5)

/* How long a helper may take to answer --who.  Each helper has a shorter limit for a silent
 * server. */
#define WHO_LIMIT (60 * SECOND)

enum { MOST_WORDS = 10 };

/* The longest --note for a lock on a server, in bytes: note and command share 200 bytes. */
enum { LONGEST_NOTE = 150 };

/* The helper's arguments, from its program to the URL. */
struct words {
	const char *list[MOST_WORDS + 1]; /* the last element stays NULL */
	size_t count;
	bool full; /* a further word was refused */
	char text[MOST_WORDS][240];
};

static void add_text(struct words *words, const char *text)
{
	if (words->count < MOST_WORDS)
		words->list[words->count++] = text;
	else
		words->full = true;
}

static void PRINTF_LIKE(2, 3) add_word(struct words *words, const char *format, ...)
{
	char *text = words->count < MOST_WORDS ? words->text[words->count] : NULL;
	va_list arguments;

	va_start(arguments, format);
	if (text != NULL)
		vsnprintf(text, sizeof words->text[0], format, arguments);
	va_end(arguments);
	add_text(words, text);
}

static void add_duration(struct words *words, const char *option, int64_t duration)
{
	add_word(words, "%s=%lld.%09lld", option, (long long)(duration / SECOND),
	    (long long)(duration % SECOND));
}

/* Add --note, which other people's terminals show, as one line: SPEC's note in quotes, if it has
 * one, then its command.  If the command begins with a quote, put an empty note ("") before it,
 * because server_note_read() takes a quoted text at the beginning for the note. */
static void add_note(struct words *words, const struct lock_spec *spec)
{
	char all[200] = "", text[sizeof all], note[LONGEST_NOTE + 1] = "";
	char **command = spec->command;

	if (spec->note != NULL)
		text_printable(note, sizeof note, spec->note, strlen(spec->note), LONGEST_NOTE);
	for (size_t i = 0; note[i] != '\0'; i++)
		if (note[i] == '"')
			note[i] = '\'';
	if (note[0] != '\0' || (command != NULL && command[0][0] == '"'))
		snprintf(all, sizeof all, "\"%s\"", note);
	while (command != NULL && *command != NULL && strlen(all) + 1 < sizeof all)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
		    all[0] == '\0' ? "" : " ", *command++);
	text_printable(text, sizeof text, all, strlen(all), sizeof text - 1);
	add_word(words, "--note=%s", text);
}

const char *server_note_read(const char *text, char note[NOTE_SIZE])
{
	const char *end = *text == '"' ? strchr(text + 1, '"') : NULL;

	note[0] = '\0';
	if (end == NULL)
		return text;
	text_printable(note, NOTE_SIZE, text + 1, (size_t)(end - text - 1), NOTE_SIZE - 1);
	return end[1] == ' ' ? end + 2 : end + 1;
}

static int start_helper(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	const struct lock_spec *spec = lock->spec;
	int64_t left = deadline_left(&wait->deadline);
	struct words words = {.count = 1};

	if (spec->slots > 0)
		add_word(&words, "--slots=%u", spec->slots);
	else if (spec->mode == SHARED)
		add_word(&words, "--mode=shared");
	if (spec->ttl > 0)
		add_duration(&words, "--ttl", spec->ttl);
	if (spec->stale > 0)
		add_duration(&words, "--stale", spec->stale);
	if (wait->try_once)
		add_word(&words, "--no-wait");
	else if (left < 86400 * SECOND * 90) /* the helper refuses a time of more than 100 days */
		add_duration(&words, "--wait", left);
	if (wait->places > 0)
		add_word(&words, "--queue-max=%u", wait->places);
	add_word(&words, "--pid=%ld", (long)lock->child->semlock);
	if (spec->command != NULL || spec->note != NULL)
		add_note(&words, spec);
	add_text(&words, "--"); /* no option follows */
	add_text(&words, spec->name);
	if (words.full)
		return error_plain(error, ERROR_NONE, "too many arguments for the helper");
	return locksmith_start(lock->server.helper, spec->method->name, words.list, error);
}

static void note_taken(struct lock *lock, const char *line)
{
	long long number;

	lock->server.helper->held = true;
	locksmith_note(lock->server.helper, line);
	if (locksmith_number(line, FIELD_TOKEN, &number))
		lock->server.token = number;
	if (locksmith_number(line, FIELD_SLOT, &number) && number >= 0 &&
	    number < lock->spec->slots)
		lock->slot = (int)number;
}

static int check_offers(const struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	unsigned offers = lock->server.helper->offers;
	const char *missing =
	    lock->spec->slots > 0 && (offers & OFFERS_SLOTS) == 0 ? "-j"
	    : lock->spec->slots == 0 && lock->spec->mode == SHARED && (offers & OFFERS_SHARED) == 0
		? "-s"
	    : wait->places > 0 && (offers & OFFERS_QUEUE_MAX) == 0 ? "--queue-max"
								   : NULL;

	return missing == NULL ? 0
	                       : error_plain(error, ERROR_USAGE, "%s: not supported by %s://",
				     missing, lock->spec->method->name);
}

/* Read what the helper has written since OK.  Returns 0, or -1 with ERROR filled. */
static int read_before_start(struct locksmith *helper, struct error *error)
{
	const struct deadline now = deadline_after(0);
	const char *line, *text;
	int got;

	while ((got = locksmith_line(helper, &now, &line)) == LINE_READ) {
		if ((text = text_after_word(line, SAYS_LOST)) != NULL)
			return error_plain(error, ERROR_LOST,
			    "lost before the command was started: %s", text);
		if ((text = text_after_word(line, SAYS_ERR)) != NULL)
			return locksmith_refused(text, error);
		if (text_after_word(line, SAYS_HELD) == NULL)
			return locksmith_unknown(helper, line, error);
		locksmith_note(helper, line);
	}
	if (got == LINE_END)
		return error_plain(error, ERROR_LOST,
		    "lost before the command was started: its helper has ended");
	return 0;
}

/* OK has been read.  Returns NEEDS_CHILD: start the command, which inherits the helper's input.
 * Returns AGAIN if our turn came while this process was stopped in the queue (Ctrl-Z), and the
 * lease is over.  Else returns FAILED. */
static enum outcome call_for_child(struct lock *lock, bool try_once, struct error *error)
{
	struct locksmith *helper = lock->server.helper;
	int heard = read_before_start(helper, error);
	bool is_over = clock_boottime() >= helper->deadline;

	if (heard != 0 && error->kind == ERROR_LOST)
		is_over = true;
	if (is_over && helper->waited && !try_once)
		return AGAIN;
	if (heard != 0)
		return FAILED;
	lock->fd = helper->in;
	return NEEDS_CHILD;
}

static void note_owner(struct lock *lock, const char *text)
{
	free(lock->server.text);
	lock->server.text = *text == '\0' ? NULL : strdup(text);
}

/* Start the helper, and ask it for the lock.  Returns 0, or -1 with ERROR filled. */
static int ask_helper(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	struct deadline *until = &lock->server.helper->answer_by;
	int64_t asked = clock_now();

	if (start_helper(lock, wait, error) != 0)
		return -1;
	*until = wait->deadline;
	until->at += GRACE;
	if (wait->try_once || (!until->never && deadline_left(until) < TRY_LIMIT))
		*until = deadline_after(TRY_LIMIT);
	if (locksmith_greet(lock->server.helper, until, error) != 0)
		return -1;
	/* The helper counts --wait from its own start, which may be late on a busy machine: give it
	 * the time that passed until its first line. */
	until->at += clock_now() - asked;
	return check_offers(lock, wait, error);
}

static enum busy_reason reason_of_busy(const struct wait_options *wait)
{
	if (wait->try_once)
		return BUSY_NOW;
	if (wait->places > 0 && deadline_left(&wait->deadline) > 0)
		return BUSY_CROWDED;
	return BUSY_TIMEOUT;
}

/* Wait for the helper's answer to our request. */
static enum outcome wait_for_word(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	struct locksmith *helper = lock->server.helper;
	const char *line, *text;
	int got;

	while ((got = locksmith_line(helper, &helper->answer_by, &line)) == LINE_READ) {
		if (text_after_word(line, SAYS_OK) != NULL) {
			note_taken(lock, line);
			return call_for_child(lock, wait->try_once, error);
		}
		if ((text = text_after_word(line, SAYS_BUSY)) != NULL) {
			note_owner(lock, text);
			lock->busy = reason_of_busy(wait);
			return BUSY;
		}
		if ((text = text_after_word(line, SAYS_ERR)) != NULL)
			return locksmith_refused(text, error);
		if ((text = text_after_word(line, SAYS_WAIT)) == NULL)
			return locksmith_unknown(helper, line, error);

		helper->waited = true;
		note_owner(lock, text);
		if (!wait->try_once)
			return WAITS;
		/* With -n, WAIT says that the helper has reached the server, and must watch a
		 * holder or a slow login for a moment: wait for the next line without a limit. */
		helper->answer_by = deadline_never();
	}
	return locksmith_silent(helper, got, error);
}

/* Is a signal pending that ends semlock?  Then do not wait for FREE: the helper releases the lock
 * by itself. */
static bool told_to_end(void)
{
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < ENDING_SIGNALS; i++)
		if (sigismember(&pending, ending_signals[i]))
			return true;
	return false;
}

/* The helper could not release the lock: keep its reason for server_stuck_reason(). */
static void note_stuck(struct lock *lock, const char *text)
{
	struct error error;

	locksmith_refused(text, &error);
	note_owner(lock, error.text);
	lock->end.stuck = EPROTO;
}

/* Wait for FREE or LOST, and for the helper's end, but not beyond the end of the lease.  If neither
 * line comes, LOCK->end.stuck is EPROTO: the helper has sent a reason; ECHILD: the helper has
 * ended; EINTR: a signal tells semlock to end; or ETIMEDOUT.  Returns true if the helper has
 * ended. */
static bool wait_until_free(struct lock *lock)
{
	struct deadline end = deadline_after(lock->server.helper->deadline - clock_boottime()),
			slice;
	const char *line, *text;
	int got;

	lock->end.stuck = ETIMEDOUT;
	do {
		slice = deadline_after(
		    deadline_left(&end) < SECOND / 5 ? deadline_left(&end) : SECOND / 5);
		got = locksmith_line(lock->server.helper, &slice, &line);
		if (got != LINE_READ)
			continue;
		if (text_after_word(line, SAYS_FREE) != NULL)
			lock->end.stuck = 0;
		if (text_after_word(line, SAYS_LOST) != NULL) {
			lock->end.stuck = 0;
			lock->end.lost = true;
		}
		text = text_after_word(line, SAYS_ERR);
		if (text != NULL)
			note_stuck(lock, text);
	} while (got != LINE_END && deadline_left(&end) > 0 && !told_to_end());
	if (lock->end.stuck == ETIMEDOUT && got == LINE_END)
		lock->end.stuck = ECHILD;
	else if (lock->end.stuck == ETIMEDOUT && deadline_left(&end) > 0)
		lock->end.stuck = EINTR;
	return got == LINE_END;
}

/* We have given up the wait.  Let the helper leave the queue, which takes a moment at most.
 * Returns true if the helper has ended. */
static bool wait_until_gone(struct locksmith *helper)
{
	struct deadline end = deadline_after(GRACE);
	const char *line;
	int got;

	if (deadline_left(&helper->answer_by) < GRACE)
		end = helper->answer_by;
	while ((got = locksmith_line(helper, &end, &line)) == LINE_READ)
		;
	return got == LINE_END;
}

static int make_helper(struct lock *lock, struct error *error)
{
	lock->fd = -1;
	lock->server.token = -1;
	lock->server.helper = calloc(1, sizeof *lock->server.helper);
	return lock->server.helper != NULL ? 0 : error_set(error, ERROR_SYSTEM, "out of memory");
}

static enum outcome server_ask_for(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	bool begins = lock->server.helper == NULL;
	enum outcome outcome = AGAIN;

	if (begins && make_helper(lock, error) != 0)
		return FAILED;
	if (lock->server.helper->held && lock->child->pid > 0)
		return TAKEN;
	while (outcome == AGAIN) {
		if (begins && ask_helper(lock, wait, error) != 0)
			return FAILED;
		outcome = wait_for_word(lock, wait, error);
		if (outcome != AGAIN)
			continue;
		locksmith_let_go(lock->server.helper);
		locksmith_forget(lock->server.helper, wait_until_gone(lock->server.helper));
		begins = true;
	}
	return outcome;
}

static void server_release(struct lock *lock)
{
	struct locksmith *helper = lock->server.helper;
	bool ended = false, alone;

	if (helper == NULL)
		return;
	if (helper->pid > 0) {
		alone = locksmith_let_go(helper);
		if (!helper->held)
			ended = wait_until_gone(helper);
		else if (alone && !lock->end.lost)
			ended = wait_until_free(lock);
		/* else a process that the command has left behind keeps the lock, or the lock is
		 * lost */
	}
	locksmith_forget(helper, ended);
	free(helper);
	lock->server.helper = NULL;
	lock->fd = -1;
}

static const char *server_stuck_reason(const struct lock *lock)
{
	if (lock->end.stuck == EPROTO && lock->server.text != NULL)
		return lock->server.text;
	if (lock->end.stuck == ECHILD)
		return "its helper has ended without an answer; the lock is free when the lease "
		       "ends";
	if (lock->end.stuck == EINTR)
		return "a signal came before the server's answer; the lock is free when the lease "
		       "ends, or sooner";
	return "the server did not answer; the lock is free when the lease ends";
}

int server_ask(const struct lock *lock, server_line hear, void *context, struct error *error)
{
	const char *argv[] = {NULL, "--who", "--", lock->spec->name, NULL};
	const struct deadline limit =
	    deadline_after(FAULT_POINT("server.who") ? SECOND : WHO_LIMIT);
	struct locksmith helper;
	const char *line, *text;
	int result = locksmith_start(&helper, lock->spec->method->name, argv, error);
	bool started = result == 0, heard = false;
	int status, got = LINE_END;

	if (started)
		result = locksmith_greet(&helper, &limit, error);
	while (result == 0 && (got = locksmith_line(&helper, &limit, &line)) == LINE_READ) {
		if ((text = text_after_word(line, SAYS_ERR)) != NULL)
			result = locksmith_refused(text, error);
		else if (text_after_word(line, SAYS_WHO) != NULL) {
			hear(line, context);
			heard = true;
		} else
			result = locksmith_unknown(&helper, line, error);
	}
	if (got == LINE_LATE)
		result = locksmith_silent(&helper, got, error);
	/* The helper holds no lock, and may never exit by itself. */
	if (started && result != 0)
		kill(helper.pid, SIGKILL);
	status = locksmith_forget(&helper, true);
	/* If a helper failed without an ERR line, its answer may be incomplete, and must not make a
	 * lock look free. */
	if (started && result == 0 && status != 0 && (status != EXIT_BUSY || !heard))
		return locksmith_silent(&helper, LINE_END, error);
	return result;
}

const struct method method_on_server = {
    .name = "server",
    .family = ON_SERVER,
    .can = CAN_SHARE | CAN_SLOTS,
    .guard = lease_guard,
    .unguard = lease_unguard,
    .ask = server_ask_for,
    .release = server_release,
    .stuck_reason = server_stuck_reason,
};
