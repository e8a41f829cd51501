/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "locksmith/common/loop.h"
#include "locksmith/s3/aws_process.h"

/* Become /bin/sh with COMMAND; never returns.  Resets all signals, because this program ignores
 * some that COMMAND expects to end it. */
static void become(const char *command, int output)
{
	int null = open("/dev/null", O_RDONLY);

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	setpgid(0, 0);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0) {
		if (null > STDERR_FILENO)
			close(null);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	}
	_exit(EXIT_NOTRUN);
}

/* Read from FD until its end.  Returns 1 at the end, 0 when UNTIL has come, or -1: there are more
 * than SIZE - 1 bytes. */
static int read_all(int fd, char *text, size_t size, int64_t until)
{
	size_t used = 0;

	while (clock_boottime() < until) {
		struct pollfd output = {fd, POLLIN, 0};
		ssize_t got;

		loop_turn(&output, 1, until);
		if (output.revents == 0)
			continue;
		got = read(fd, text + used, size - used);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0) {
			text[used] = '\0';
			return 1;
		}
		used += (size_t)got;
		if (used == size)
			return -1;
	}
	return 0;
}

/* The program's status as of waitpid(2); -1: it has not ended by UNTIL. */
static int status_by(pid_t pid, int64_t until)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_boottime() >= until)
			return -1;
		loop_pause(clock_boottime() + 5 * MILLISECOND);
	}
	return status;
}

int aws_process_run(const char *command, char *text, size_t size, int64_t until,
    struct error *error)
{
	int ends[2], got, status = -1;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot create a pipe");
	pid = fork();
	if (pid == 0)
		become(command, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_set(error, ERROR_SYSTEM, "cannot start credential_process");
	}
	got = read_all(ends[0], text, size, until);
	close(ends[0]);
	if (got > 0)
		status = status_by(pid, until);
	if (got <= 0 || status == -1) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL); /* the child may not have made its process group yet */
		waitpid(pid, NULL, 0);
	}
	if (got < 0)
		return error_plain(error, ERROR_PERMISSION,
		    "credential_process: output too long: %.200s", command);
	if (status == -1)
		return error_plain(error, ERROR_AWAY,
		    "no login: credential_process has not ended in time: %.200s", command);
	if (status != 0)
		return error_plain(error, ERROR_PERMISSION,
		    "no login: credential_process failed (status %d): %.200s",
		    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), command);
	return 0;
}
