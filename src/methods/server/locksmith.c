/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "methods/server/locksmith.h"
#include "report/text.h"
#include "sys/files.h"
#include "sys/waiting.h"

/* The number of reads that empty a full pipe of 64 KiB. */
#define PIPE_READS (64 * 1024 / LOCKSMITH_LINE)

const char *locksmith_directory(unsigned n)
{
	const char *named = secure_getenv("SEMLOCK_LOCKSMITH_DIR");

	if (named != NULL && *named != '\0' && n-- == 0)
		return named;
	return n == 0 ? LIBEXECDIR : NULL;
}

static int is_locksmith(const struct dirent *entry)
{
	return strncmp(entry->d_name, LOCKSMITH_PREFIX, strlen(LOCKSMITH_PREFIX)) == 0;
}

void locksmith_schemes(char *text, size_t size, struct similar *similar)
{
	const char *directory, *scheme;
	struct dirent **found;
	int count;

	*text = '\0';
	for (unsigned n = 0; (directory = locksmith_directory(n)) != NULL; n++) {
		found = NULL;
		count = scandir(directory, &found, is_locksmith, alphasort);
		for (int i = 0; i < count; i++) {
			scheme = found[i]->d_name + strlen(LOCKSMITH_PREFIX);
			similar_try(similar, scheme);
			snprintf(text + strlen(text), size - strlen(text), " %s", scheme);
			free(found[i]);
		}
		free(found);
	}
	if (*text == '\0')
		snprintf(text, size, " (none)");
}

/* Write into TEXT (SIZE bytes) why no helper was started.  If ERRNUM is ENOENT, no directory has a
 * program for the scheme, which may be mistyped.  Any other ERRNUM is from starting PATH. */
static void explain_exec(char *text, size_t size, const struct locksmith *helper, const char *path,
    int errnum)
{
	struct similar similar = {.word = helper->scheme, .length = strlen(helper->scheme)};
	const char *first = locksmith_directory(0), *second = locksmith_directory(1);
	char schemes[200];

	if (errnum != ENOENT) {
		snprintf(text, size, "cannot start %.200s: %s", path, strerror(errnum));
		return;
	}
	locksmith_schemes(schemes, sizeof schemes, &similar);
	similar_hint(&similar, "", "://");
	snprintf(text, size,
	    "cannot start " LOCKSMITH_PREFIX
	    "%s, the program for such URLs, in %.200s%s%.200s: %s; "
	    "available:%s%s For a file, write ./NAME",
	    helper->scheme, first, second == NULL ? "" : " or ", second == NULL ? "" : second,
	    strerror(errnum), schemes, similar.hint[0] == '\0' ? "." : similar.hint);
}

/* In the child.  If exec fails, write the ERR line in the helper's place. */
static void become_locksmith(const struct locksmith *helper, int output, const char **argv)
{
	char line[LOCKSMITH_LINE], reason[LOCKSMITH_LINE - 100], path[PATH_MAX];
	const char *directory;
	int length, errnum = ENOENT;

	dup2(helper->monitor, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	if (fcntl(STDERR_FILENO, F_GETFD) <
	    0) /* it is closed: a later socket would get its number, and the messages */
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	descriptor_close_others();
	/* a signal to our process group must not keep the helper from releasing the lock */
	setsid();
	argv[0] = path;
	for (unsigned n = 0; errnum == ENOENT && (directory = locksmith_directory(n)) != NULL;
	     n++) {
		errno = ENAMETOOLONG; /* a path that was cut may name another program */
		if (snprintf(path, sizeof path, "%s/%s%s", directory, LOCKSMITH_PREFIX,
			helper->scheme) < (int)sizeof path)
			execv(path, (char *const *)(uintptr_t)argv);
		errnum = errno;
	}
	explain_exec(reason, sizeof reason, helper, path, errnum);
	length = snprintf(line, sizeof line,
	    SAYS_LOCKSMITH " %d " OFFER_SHARED " " OFFER_SLOTS " " OFFER_QUEUE_MAX "\n" SAYS_ERR
			   " %d %s\n",
	    LOCKSMITH_PROTOCOL, EXIT_UNAVAILABLE, reason);
	if (write(STDOUT_FILENO, line, (size_t)length) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_UNAVAILABLE);
}

void locksmith_mark(int pipe)
{
	fcntl(pipe, F_SETPIPE_SZ, 1); /* the kernel rounds it up to a page */
}

bool locksmith_marked(int pipe)
{
	int size = fcntl(pipe, F_GETPIPE_SZ);

	return size < 0 || size <= sysconf(_SC_PAGESIZE);
}

/* SEMLOCK_SSH names a program to run.  If semlock has more rights than its caller (secure_getenv(3)
 * then returns NULL), do not pass the variable on: the helper cannot know of these rights. */
static void distrust_environment(void)
{
	if (secure_getenv("SEMLOCK_SSH") == NULL)
		unsetenv("SEMLOCK_SSH");
}

int locksmith_start(struct locksmith *helper, const char *scheme, const char **argv,
    struct error *error)
{
	int input[2], output[2];

	*helper = (struct locksmith){.in = -1, .monitor = -1, .out = -1, .scheme = scheme};
	for (unsigned i = 1; argv[i] != NULL; i++)
		helper->url = argv[i]; /* the last one */
	if (descriptor_pipe(input) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
	locksmith_mark(input[1]);
	helper->monitor = input[0];
	helper->in = input[1];
	if (descriptor_pipe(output) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
	helper->out = output[0];
	fcntl(helper->out, F_SETFL, O_NONBLOCK);
	distrust_environment();
	helper->pid = fork();
	if (helper->pid == 0)
		become_locksmith(helper, output[1], argv);
	close(output[1]);
	if (helper->pid < 0)
		return error_no_process(error);
	return 0;
}

/* The next complete line of the buffer, or NULL.  If a line is too long, its beginning stays in the
 * buffer, so that the rest is not read as a line of its own. */
static const char *whole_line(struct locksmith *helper)
{
	char *end;

	memmove(helper->buffer, helper->buffer + helper->taken, helper->used - helper->taken);
	helper->used -= helper->taken;
	helper->taken = 0;
	end = memchr(helper->buffer, '\n', helper->used);
	if (end == NULL) {
		if (helper->used == sizeof helper->buffer)
			helper->used--;
		return NULL;
	}
	*end = '\0';
	helper->taken = (size_t)(end - helper->buffer) + 1;
	return helper->buffer;
}

int locksmith_line(struct locksmith *helper, const struct deadline *until, const char **line)
{
	struct pollfd answer = {helper->out, POLLIN, 0};
	unsigned reads = 0;
	const char *note;
	int ready;
	ssize_t got;

	for (;;) {
		*line = whole_line(helper);
		if (*line != NULL) {
			note = text_after_word(*line, SAYS_NOTE);
			if (note == NULL)
				return LINE_READ;
			complain("%s: %s", helper->url, note);
			continue;
		}
		/* A helper that writes notes without end counts as late, too. */
		if (reads++ >= PIPE_READS && deadline_left(until) == 0)
			return LINE_LATE;
		ready = poll_until(&answer, 1, *until);
		if (ready < 0)
			helper->unheard = errno;
		if (ready <= 0)
			return ready < 0 ? LINE_END : LINE_LATE;
		got = read(helper->out, helper->buffer + helper->used,
		    sizeof helper->buffer - helper->used);
		if (got > 0)
			helper->used += (size_t)got;
		else if (got == 0 || (errno != EINTR && errno != EAGAIN))
			return LINE_END;
	}
}

int locksmith_greet(struct locksmith *helper, const struct deadline *until, struct error *error)
{
	static const char offers[][sizeof OFFER_QUEUE_MAX] = {OFFER_SHARED, OFFER_SLOTS,
	    OFFER_ORDER, OFFER_TOKEN, OFFER_QUEUE_MAX};
	char words[LOCKSMITH_LINE], *word, *rest;
	const char *line, *text;
	int got = locksmith_line(helper, until, &line);

	if (got != LINE_READ)
		return locksmith_silent(helper, got, error);
	text = text_after_word(line, SAYS_LOCKSMITH);
	if (text == NULL)
		return locksmith_unknown(helper, line, error);
	snprintf(words, sizeof words, "%s", text);
	if (strtol(words, &rest, 10) != LOCKSMITH_PROTOCOL || (*rest != ' ' && *rest != '\0'))
		return error_plain(error, ERROR_UNAVAILABLE,
		    LOCKSMITH_PREFIX
		    "%s speaks protocol version %.*s, this semlock speaks version %d: "
		    "install both from the same release",
		    helper->scheme, (int)strcspn(text, " "), text, LOCKSMITH_PROTOCOL);
	/* A later release may know more words: ignore them. */
	for (word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		for (unsigned i = 0; i < sizeof offers / sizeof *offers; i++)
			if (strcmp(word, offers[i]) == 0)
				helper->offers |= 1U << i;
	return 0;
}

int locksmith_silent(const struct locksmith *helper, int got, struct error *error)
{
	if (helper->unheard != 0)
		return error_plain(error, ERROR_SYSTEM,
		    "cannot wait for " LOCKSMITH_PREFIX "%s: %s", helper->scheme,
		    strerror(helper->unheard));
	return error_plain(error, ERROR_UNAVAILABLE, LOCKSMITH_PREFIX "%s %s", helper->scheme,
	    got == LINE_LATE ? "did not answer in time" : "has ended without an answer");
}

int locksmith_unknown(const struct locksmith *helper, const char *line, struct error *error)
{
	return error_plain(error, ERROR_UNAVAILABLE,
	    LOCKSMITH_PREFIX "%s sent a line unknown to protocol version %d: %.200s",
	    helper->scheme, LOCKSMITH_PROTOCOL, line);
}

/* Accept only statuses that semlock(1) lists, but not 1: that is for BUSY, and -E can change it. */
int locksmith_refused(const char *text, struct error *error)
{
	static const int known[] = {EXIT_USAGE, EXIT_NOTLOCKABLE, EXIT_NOTOPEN, EXIT_UNAVAILABLE,
	    EXIT_SYSTEM, EXIT_CANTCREATE, EXIT_LOST, EXIT_NOTPERMITTED, EXIT_RUNTIMEOUT,
	    EXIT_NOTRUN, EXIT_NOTFOUND};
	enum kind kind = ERROR_NONE;
	char *words;
	long status = strtol(text, &words, 10);

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (status == known[i])
			kind = (enum kind)status;
	return error_plain(error, kind, "%s", words + strspn(words, " "));
}

const char *locksmith_field(const char *line, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = line; (at = strstr(at, key)) != NULL; at += length)
		if (at == line || at[-1] == ' ')
			return at + length;
	return NULL;
}

bool locksmith_number(const char *line, const char *key, long long *number)
{
	const char *value = locksmith_field(line, key);

	if (value != NULL)
		*number = strtoll(value, NULL, 10);
	return value != NULL;
}

void locksmith_note(struct locksmith *helper, const char *line)
{
	long long number;

	if (locksmith_number(line, FIELD_LEASE, &number) && number >= 0)
		helper->lease = number;
	if (locksmith_number(line, FIELD_DEADLINE, &number) && number >= 0)
		helper->deadline = number;
}

void locksmith_begin(struct locksmith *helper, pid_t command)
{
	char line[32];
	int length = snprintf(line, sizeof line, TOLD_START " " FIELD_PID "%ld\n", (long)command);

	/* MONITOR keeps a read end open: write(2) raises no SIGPIPE, even after the helper has
	 * ended. */
	while (write(helper->in, line, (size_t)length) < 0 && errno == EINTR)
		;
}

bool locksmith_let_go(struct locksmith *helper)
{
	struct pollfd monitor = {helper->monitor, POLLIN, 0};

	if (helper->in >= 0)
		close(helper->in);
	helper->in = -1;
	return poll(&monitor, 1, 0) == 1 && (monitor.revents & POLLHUP) != 0;
}

int locksmith_forget(struct locksmith *helper, bool ended)
{
	int *const all[] = {&helper->in, &helper->monitor, &helper->out};
	int status = -1;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
	while (ended && helper->pid > 0 && waitpid(helper->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
