#include <config.h>

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

#include "descriptor.h"
#include "exitcode.h"
#include "locksmith.h"

static const char *program(void)
{
	const char *named = getenv("SEMLOCK_LOCKSMITH");

	return named != NULL && *named != '\0' ? named : LIBEXECDIR "/semlock-locksmith";
}

/* In the child.  If it cannot be started, it is we who answer in its stead. */
static void become_locksmith(const struct locksmith *smith, int output, const char **argv)
{
	int nothing = open("/dev/null", O_RDWR);
	char line[LOCKSMITH_LINE];
	int length;

	dup2(smith->eye, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(nothing, STDERR_FILENO);
	descriptor_close_others();
	setsid(); /* what kills our process group must not keep it from letting go */
	argv[0] = program();
	execv(argv[0], (char *const *)(uintptr_t)argv);
	length = snprintf(line, sizeof line,
	    "ERR %d cannot start the helper for locks on a server, %.200s: %s\n", EXIT_UNAVAILABLE,
	    argv[0], strerror(errno));
	if (write(STDOUT_FILENO, line, (size_t)length) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_UNAVAILABLE);
}

int locksmith_start(struct locksmith *smith, const char **argv, struct why *why)
{
	int input[2], output[2];

	*smith = (struct locksmith){.in = -1, .eye = -1, .out = -1};
#ifndef HAVE_NETWORK
	(void)argv;
	(void)input;
	(void)output;
	(void)become_locksmith;
	return why_say(why, TROUBLE_UNAVAILABLE,
	    "locks on a server are not in this semlock: it was built without libcurl and jansson "
	    "(configure --with-network)");
#endif
	if (descriptor_pipe(input) != 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot make a pipe");
	smith->eye = input[0];
	smith->in = input[1];
	if (descriptor_pipe(output) != 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot make a pipe");
	smith->out = output[0];
	fcntl(smith->out, F_SETFL, O_NONBLOCK);
	smith->pid = fork();
	if (smith->pid == 0)
		become_locksmith(smith, output[1], argv);
	close(output[1]);
	if (smith->pid < 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot start a process");
	return 0;
}

/* A line that is whole, out of the buffer; or NULL.  One that is too long is none of its. */
static const char *whole_line(struct locksmith *smith)
{
	char *end;

	memmove(smith->buffer, smith->buffer + smith->taken, smith->used - smith->taken);
	smith->used -= smith->taken;
	smith->taken = 0;
	end = memchr(smith->buffer, '\n', smith->used);
	if (end == NULL) {
		if (smith->used == sizeof smith->buffer)
			smith->used = 0;
		return NULL;
	}
	*end = '\0';
	smith->taken = (size_t)(end - smith->buffer) + 1;
	return smith->buffer;
}

static int milliseconds(const struct deadline *until)
{
	int64_t left = deadline_left(until);

	if (until->never)
		return -1;
	return left / MILLISECOND >= INT_MAX ? INT_MAX
					     : (int)((left + MILLISECOND - 1) / MILLISECOND);
}

int locksmith_line(struct locksmith *smith, const struct deadline *until, const char **line)
{
	struct pollfd answer = {smith->out, POLLIN, 0};
	ssize_t got;

	while ((*line = whole_line(smith)) == NULL) {
		if (poll(&answer, 1, milliseconds(until)) == 0)
			return LINE_LATE;
		got = read(smith->out, smith->buffer + smith->used,
		    sizeof smith->buffer - smith->used);
		if (got > 0)
			smith->used += (size_t)got;
		else if (got == 0 || (errno != EINTR && errno != EAGAIN))
			return LINE_END;
	}
	return LINE_READ;
}

const char *locksmith_says(const char *line, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(line, word, length) != 0)
		return NULL;
	if (line[length] == '\0')
		return line + length;
	return line[length] == ' ' ? line + length + 1 : NULL;
}

bool locksmith_number(const char *line, const char *key, long long *number)
{
	const char *at = line;
	size_t length = strlen(key);

	for (; (at = strstr(at, key)) != NULL; at += length)
		if (at == line || at[-1] == ' ') {
			*number = strtoll(at + length, NULL, 10);
			return true;
		}
	return false;
}

void locksmith_note(struct locksmith *smith, const char *line)
{
	long long number;

	if (locksmith_number(line, "lease=", &number) && number >= 0)
		smith->lease = number;
	if (locksmith_number(line, "deadline=", &number) && number >= 0)
		smith->deadline = number;
}

/* EYE is open: there is a reader, dead helper or not, and no SIGPIPE. */
void locksmith_tell(struct locksmith *smith, const char *line)
{
	while (write(smith->in, line, strlen(line)) < 0 && errno == EINTR)
		;
}

bool locksmith_let_go(struct locksmith *smith)
{
	struct pollfd eye = {smith->eye, POLLIN, 0};

	if (smith->in >= 0)
		close(smith->in);
	smith->in = -1;
	return poll(&eye, 1, 0) == 1 && (eye.revents & POLLHUP) != 0;
}

struct deadline locksmith_lease_end(const struct locksmith *smith)
{
	return deadline_after(smith->deadline - clock_boottime());
}

int locksmith_forget(struct locksmith *smith, bool ended)
{
	int *const all[] = {&smith->in, &smith->eye, &smith->out};
	int status = -1;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
	while (ended && smith->pid > 0 && waitpid(smith->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
