/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/unknown_option.h"
#include "owners/owners.h"
#include "report/status_fd.h"
#include "run/notes.h"
#include "run/observer.h"
#include "run/outcome.h"
#include "sys/memory.h"
#include "sys/signals.h"
#include "sys/terminal.h"

const char *messages_label(const struct request *request, const struct lock *lock)
{
	enum { SIZE = PATH_MAX + 32 };
	static char *text;

	if (request->as_flock || lock->spec->name != NULL)
		return lock->spec->name == NULL ? request->label : lock->spec->name;
	if (text == NULL && (text = memory_lasting(SIZE)) == NULL)
		return request->label;
	lock_text(lock, text, SIZE);
	return text;
}

/* ---- in words ---- */

static const struct {
	const char *event, *as_flock, *text, *more;
} busy_words[] = {
    [BUSY_NOW] = {"busy", "failed to get lock", "busy", ""},
    [BUSY_TIMEOUT] = {"timeout", "timeout while waiting to get lock", "still busy",
	"; the time is up"},
    [BUSY_SUPERSEDED] = {"superseded", "superseded by a later waiter",
	"superseded by a later waiter", ""},
    [BUSY_CROWDED] = {"busy", "failed to get lock", "busy", "; its queue is full"},
    [BUSY_INHERITED] = {"busy", "failed to get lock", "busy", ""},
    [BUSY_TOGGLED] = {"toggled", "", "", ""},
};

static const char end_words[][sizeof "not-run"] = {
    [ENDED_EXIT] = "exit",
    [ENDED_SIGNAL] = "signal",
    [ENDED_NOT_RUN] = "not-run",
};

/* Has --run-timeout signalled the command? */
static bool limit_reached(const struct run_outcome *outcome)
{
	return outcome->end == RUN_ENDED && outcome->command.limit > LIMIT_KEPT;
}

static void end_text(const struct run_outcome *outcome, char *text, size_t size)
{
	const struct result *command = &outcome->command;

	switch (outcome->end) {
	case RUN_GOES_ON:
		snprintf(text, size, "%s", "");
		break;
	case RUN_BUSY:
		snprintf(text, size, "%s", busy_words[outcome->busy].event);
		break;
	case RUN_FAILED:
		snprintf(text, size, "failed %d", outcome->failure);
		break;
	case RUN_ENDED:
		if (command->how == ENDED_NOT_RUN)
			snprintf(text, size, "not-run %s", status_fd_errno(command->code));
		else
			snprintf(text, size, "%s %d", end_words[command->how], command->code);
	}
}

void outcome_text(const struct run_outcome *outcome, char *text, size_t size)
{
	if (outcome->lost)
		snprintf(text, size, "lost");
	else if (outcome->end == RUN_ENDED && outcome->command.replaced)
		snprintf(text, size, "replaced");
	else if (limit_reached(outcome))
		snprintf(text, size, "run-timeout");
	else if (outcome->hold_end != NULL)
		snprintf(text, size, "%s", outcome->hold_end);
	else
		end_text(outcome, text, size);
}

bool outcome_speaks(const struct run_outcome *outcome, const struct request *request)
{
	return status_fd >= 0 || request->log != NULL || limit_reached(outcome) ||
	       outcome->end != RUN_ENDED || outcome->command.how == ENDED_NOT_RUN;
}

/* ---- the kinds of end ---- */

/* What the message about a busy lock says. */
struct refusal {
	char holder[OWNER_TEXT];
	char way_out[WAY_OUT]; /* --verbose: what to do; else "" */
};

/* Fill REFUSAL, which is empty, with the holder of LOCK at this moment, or OTHERWISE if none is
 * found; if VERBOSE, also with what to do. */
static void describe_holder(const struct lock *lock, const char *otherwise, bool verbose,
    struct refusal *refusal)
{
	char *text = refusal->holder;
	const size_t size = sizeof refusal->holder;
	struct search_terms terms = SEARCH_BRIEFLY;
	struct owners found;
	bool named;

	/* Many waits may end at once.  So check the processes that this wait's observer has found,
	 * instead of searching all again.  On a machine too busy for a whole look, spend 5 ms on
	 * it. */
	terms.known = observer_found(lock);
	if (observer_was_slow(lock)) {
		terms.budget = 5 * MILLISECOND;
		terms.list_use = LIST_NEVER;
	}
	snprintf(text, size, "%s", otherwise);
	if (!owners_for_text(&found, lock, &terms))
		return;
	notes_read(&found);
	named = owner_text(&found, &OWNER_WHOLE, text, size);
	if (!named && found.seen == SEEN_CUT)
		snprintf(text, size, "%s; its holder was not looked for in all processes",
		    otherwise);
	else if (!named && lock->spec->method->family == OF_KERNEL && !process_sees_all())
		/* the holder is outside this PID namespace */
		snprintf(text, size, "held; its holder cannot be seen from here");
	if (verbose)
		way_out_text(&found, lock, refusal->way_out, sizeof refusal->way_out);
	owners_forget(&found);
	search_terms_forget(&terms);
}

/* Write into TEXT which waiter, ended by now or not, has superseded this one; if unknown,
 * OTHERWISE. */
static void superseder_text(const struct lock *lock, const char *otherwise, char *text, size_t size)
{
	const pid_t pid = lock->place.superseded_by;
	struct process process;
	char command[4 * OWNER_COMMAND_COLUMNS];

	if (pid == 0) {
		snprintf(text, size, "%s", otherwise);
	} else if (!process_lives(pid) || !process_read(pid, &process)) {
		snprintf(text, size, "superseded by %ld", (long)pid);
	} else {
		process_command(&process, command, sizeof command, OWNER_COMMAND_COLUMNS);
		snprintf(text, size, "superseded by %ld (%s)", (long)pid, command);
	}
}

/* Without --verbose, show a refusal only on a terminal, and only if the terminal is not stopped
 * (Ctrl-S): otherwise semlock would block in the write, and outlast its -w. */
static bool is_refusal_shown(const struct request *request)
{
	return request->verbose || (report_is_on_terminal() && terminal_takes_bytes(STDERR_FILENO));
}

void outcome_busy(struct run_outcome *outcome, const struct request *request,
    const struct lock *lock, enum busy_reason reason)
{
	struct refusal refusal = {.way_out = ""};

	outcome->end = RUN_BUSY;
	outcome->busy = reason;
	if (reason == BUSY_TOGGLED)
		return;
	if (request->as_flock) {
		if (request->verbose)
			complain("%s", busy_words[reason].as_flock);
	} else if (!request->quiet && is_refusal_shown(request)) {
		if (reason == BUSY_SUPERSEDED)
			superseder_text(lock, busy_words[reason].text, refusal.holder,
			    sizeof refusal.holder);
		else
			describe_holder(lock, busy_words[reason].text, request->verbose, &refusal);
		complain("%s: %s%s%s", messages_label(request, lock), refusal.holder,
		    busy_words[reason].more, refusal.way_out);
	}
	status_fd_event("%s", busy_words[reason].event);
}

void outcome_failed(struct run_outcome *outcome, const struct request *request,
    const struct lock *lock, const struct error *error)
{
	const bool of_lock_call =
	    error->kind == ERROR_LOCKABLE || (error->kind == ERROR_SYSTEM && lock != NULL);
	const char *label = lock == NULL ? request->label : messages_label(request, lock);
	const char *text = error->text;

	outcome->end = RUN_FAILED;
	outcome->failure = exit_status_of(error->kind);
	if (request->as_flock && of_lock_call && error->errnum != 0)
		text = strerror(error->errnum); /* flock(1)'s words */
	complain("%s: %s", label, text);
	status_fd_event("failed %d", outcome->failure);
}

/* Is NAME a file in this directory, like "$0" in a script that was started by "sh script" and locks
 * itself?  An empty file does not count: it is probably a lock. */
static bool is_here(const char *name)
{
	struct stat file;

	return strchr(name, '/') == NULL && stat(name, &file) == 0 && file.st_size > 0;
}

static bool is_word_of_shell(const char *name)
{
	static const char words[][sizeof "continue"] = {"!", "(", "[[", "alias", "bg", "break",
	    "case", "cd", "command", "continue", "declare", "eval", "exec", "exit", "export", "fg",
	    "for", "function", "if", "let", "local", "popd", "pushd", "read", "readonly", "return",
	    "select", "set", "shift", "shopt", "source", "time", "trap", "type", "typeset",
	    "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(name, words[i]) == 0)
			return true;
	return false;
}

/* Is WORD "NAME=VALUE"? */
static bool is_assignment(const char *word)
{
	size_t length = 0;

	while (isalnum((unsigned char)word[length]) || word[length] == '_')
		length++;
	return length > 0 && !isdigit((unsigned char)*word) && word[length] == '=';
}

/* The command was not found.  Say so, and guess why: perhaps the user forgot LOCK, or an option's
 * value. */
static void say_not_found(const struct request *request, const struct lock *first)
{
	const char *name = request->command[0], *rest = request->command[1];
	const char *instead = subcommand_hint(request->label);
	const char *made = "";
	struct stat file;

	if (first->spec->name != NULL && first->kernel.made &&
	    stat(first->spec->name, &file) == 0 && file.st_size == 0)
		made = ", an empty file that was made just now";
	if (is_word_of_shell(name))
		complain("%s: cannot run: it is shell syntax; use semlock %s -c '%s%s%s && ...'",
		    name, request->label, name, rest == NULL ? "" : " ", rest == NULL ? "" : rest);
	else if (is_assignment(name))
		complain("%s: cannot run: it is shell syntax; use semlock %s env %s%s%s", name,
		    request->label, name, rest == NULL ? "" : " ", rest == NULL ? "" : rest);
	else if (instead != NULL)
		complain(
		    "%s: cannot run: not found in PATH; %s was taken for LOCK, as semlock has no "
		    "subcommands: %s",
		    name, request->label, instead);
	else if (rest == NULL && strpbrk(name, " \t\n") != NULL)
		complain("%s: cannot run: no such file; a shell command must follow -c", name);
	else if (strchr(name, '/') != NULL && access(name, F_OK) == 0)
		complain("%s: cannot run: bad interpreter", name);
	else if (is_here(name))
		complain("%s: cannot run: not in PATH, but ./%s exists", name, name);
	else
		complain("%s: cannot run: %s (LOCK was %s%s)", name,
		    strchr(name, '/') == NULL ? "not found in PATH" : strerror(ENOENT),
		    request->label, made);
}

static void say_not_run(const struct request *request, const struct lock *first, int errnum)
{
	const char *reason = strerror(errnum);
	char **command = request->command;

	if (command == NULL)
		complain("%s: cannot fork the process that holds it: %s", request->label, reason);
	else if (request->as_flock)
		complain("failed to execute %s: %s", command[0], reason);
	else if (errnum == ENOENT)
		say_not_found(request, first);
	else
		complain("%s: cannot run: %s", command[0], reason);
}

static int status_not_run(const struct request *request, int errnum)
{
	if (request->command == NULL)
		return EXIT_SYSTEM;
	if (request->as_flock)
		return errnum == ENOMEM ? EXIT_SYSTEM : EXIT_UNAVAILABLE;
	return errnum == ENOENT ? EXIT_NOTFOUND : EXIT_NOTRUN;
}

static void say_limit(const struct request *request, const struct result *command)
{
	const char *sent = request->signal == 0 ? "TERM" : request->signal_text;

	if (command->limit == LIMIT_KILLS && request->signal != SIGKILL && request->kill_after > 0)
		sent = "a signal, and then KILL";
	complain("%s: the command has run for longer than --run-timeout, and was sent %s",
	    request->label, sent);
}

void outcome_ended(const struct run_outcome *outcome, const struct request *request,
    const struct lock *first)
{
	const struct result *command = &outcome->command;
	char text[40] = "";

	if (status_fd >= 0) /* else avoid printf(3), which costs page faults */
		end_text(outcome, text, sizeof text);
	if (command->how == ENDED_NOT_RUN) {
		status_fd_event("%s", text);
		say_not_run(request, first, command->code);
		return;
	}
	if (limit_reached(outcome)) {
		status_fd_event("run-timeout");
		if (!request->quiet)
			say_limit(request, command);
	}
	status_fd_event("%s held=" STATUS_FD_SECONDS, text, STATUS_FD_TIME(outcome->held));
}

void outcome_if_lost(struct run_outcome *outcome, const struct request *request,
    const struct lock *locks, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!locks[i].end.lost)
			continue;
		outcome->lost = true;
		if (!locks[i].end.lost_said)
			complain("%s: the lock was lost while the command ran",
			    messages_label(request, &locks[i]));
		status_fd_event("lost");
	}
}

/* ---- the exit status ---- */

/* Does --run-timeout decide the exit status?  Not if semlock itself received the signal that ended
 * the command (128+n), nor if SIGKILL was needed (137, as with timeout(1)). */
static bool ended_by_limit(const struct result *command)
{
	if (command->received)
		return false;
	return command->limit == LIMIT_REACHED ||
	       (command->limit == LIMIT_KILLS && command->how == ENDED_EXIT);
}

static int status_of_command(const struct result *command, const struct request *request)
{
	if (command->how == ENDED_NOT_RUN)
		return status_not_run(request, command->code);
	if (ended_by_limit(command))
		return EXIT_RUNTIMEOUT;
	return command->how == ENDED_SIGNAL ? 128 + command->code : command->code;
}

int outcome_status(const struct run_outcome *outcome, const struct request *request)
{
	if (outcome->lost)
		return EXIT_LOST;
	switch (outcome->end) {
	case RUN_GOES_ON:
		break;
	case RUN_BUSY:
		return outcome->busy == BUSY_TOGGLED ? EXIT_SUCCESS : request->busy_status;
	case RUN_FAILED:
		return outcome->failure;
	case RUN_ENDED:
		return status_of_command(&outcome->command, request);
	}
	return EXIT_SUCCESS;
}

int outcome_die(const struct run_outcome *outcome, int status)
{
	sigset_t set;

	if (outcome->signal == 0 || status != 128 + outcome->signal)
		return status;
	set = signals_only(outcome->signal);
	prctl(PR_SET_DUMPABLE, 0);
	signal(outcome->signal, SIG_DFL);
	raise(outcome->signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return status;
}
