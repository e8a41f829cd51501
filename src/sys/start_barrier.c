#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/descriptor.h"
#include "sys/start_barrier.h"
#include "sys/wakeup.h"

static ssize_t barrier_receive(int fd, void *data, size_t size)
{
	ssize_t got;

	do {
		got = recv(fd, data, size, 0);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* In the child.  wakeup_off() first: the command gets the signals as semlock got them, not as its timer
 * changed them. */
static void await_release(const struct start_barrier *barrier, const sigset_t *before, sigset_t *mask)
{
	sigset_t all;
	char word;

	sigprocmask(SIG_SETMASK, before, NULL);
	wakeup_off();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, mask);
	if (barrier_receive(barrier->socket, &word, 1) != 1)
		_exit(EXIT_FAILURE);
}

pid_t start_barrier_start(struct start_barrier *barrier, sigset_t *mask)
{
	sigset_t all, before;
	int ends[2];
	pid_t pid;

	if (descriptor_socket_pair(ends) != 0)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		barrier->socket = ends[1];
		await_release(barrier, &before, mask);
		return 0;
	}
	close(ends[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	barrier->pid = pid;
	barrier->socket = ends[0];
	CRASH_POINT("start_barrier.started");
	return pid;
}

void start_barrier_fail(const struct start_barrier *barrier, int errnum)
{
	send(barrier->socket, &errnum, sizeof errnum, MSG_NOSIGNAL);
	_exit(EXIT_FAILURE);
}

int start_barrier_open(struct start_barrier *barrier)
{
	int errnum = 0;
	ssize_t sent;

	while ((sent = send(barrier->socket, "", 1, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	if (sent != 1) {
		close(barrier->socket); /* else the child, still at the barrier, and this process would wait for each other */
		return -1;
	}
	CRASH_POINT("start_barrier.opened");
	if (barrier_receive(barrier->socket, &errnum, sizeof errnum) != (ssize_t)sizeof errnum)
		errnum = 0; /* closed by the exec */
	close(barrier->socket);
	return errnum;
}

void start_barrier_cancel(struct start_barrier *barrier)
{
	if (barrier->pid <= 0)
		return;
	close(barrier->socket);
	while (waitpid(barrier->pid, NULL, 0) < 0 && errno == EINTR)
		;
	barrier->pid = 0;
}
