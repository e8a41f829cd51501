#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/wakeup.h"
#include "sys/crash_points.h"
#include "sys/descriptor.h"
#include "sys/start_barrier.h"

static ssize_t receive(int fd, void *data, size_t size)
{
	ssize_t got;

	do {
		got = recv(fd, data, size, 0);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* What a timer of the parent's has changed is undone first: the command shall find its
 * signals as we found them. */
static void placeholder(const struct start_barrier *start_barrier, const sigset_t *before, sigset_t *mask)
{
	sigset_t all;
	char word;

	sigprocmask(SIG_SETMASK, before, NULL);
	alarm_off();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, mask);
	if (receive(start_barrier->socket, &word, 1) != 1)
		_exit(EXIT_FAILURE);
}

static int make_socket(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		fcntl(ends[i], F_SETFD, FD_CLOEXEC);
		ends[i] = descriptor_above_standard(ends[i]);
		if (ends[i] < 0)
			return -1;
	}
	return 0;
}

pid_t start_barrier_start(struct start_barrier *start_barrier, sigset_t *mask)
{
	sigset_t all, before;
	int ends[2];
	pid_t pid;

	if (make_socket(ends) != 0)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		start_barrier->socket = ends[1];
		placeholder(start_barrier, &before, mask);
		return 0;
	}
	close(ends[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	start_barrier->pid = pid;
	start_barrier->socket = ends[0];
	CRASH_POINT("gate.started");
	return pid;
}

void start_barrier_fail(const struct start_barrier *start_barrier, int errnum)
{
	send(start_barrier->socket, &errnum, sizeof errnum, MSG_NOSIGNAL);
	_exit(EXIT_FAILURE);
}

int start_barrier_open(struct start_barrier *start_barrier)
{
	int errnum = 0;
	ssize_t sent;

	while ((sent = send(start_barrier->socket, "", 1, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	if (sent != 1) {
		close(start_barrier->socket); /* or it would stand there for ever, and we wait for it */
		return -1;
	}
	CRASH_POINT("gate.opened");
	if (receive(start_barrier->socket, &errnum, sizeof errnum) != (ssize_t)sizeof errnum)
		errnum = 0; /* closed by the exec */
	close(start_barrier->socket);
	return errnum;
}

void start_barrier_cancel(struct start_barrier *start_barrier)
{
	if (start_barrier->pid <= 0)
		return;
	close(start_barrier->socket);
	while (waitpid(start_barrier->pid, NULL, 0) < 0 && errno == EINTR)
		;
	start_barrier->pid = 0;
}
