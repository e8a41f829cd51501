/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/signals.h"
#include "sys/start_barrier.h"

/* In the child.  wakeup_off() first: the command gets the signals as semlock got them, not as its timer
 * changed them. */
static void await_release(const struct start_barrier *barrier, const sigset_t *before, sigset_t *mask)
{
	ssize_t got;
	char word;

	sigprocmask(SIG_SETMASK, before, NULL);
	wakeup_off();
	signals_block_all(mask);
	UNINTERRUPTED(got, recv(barrier->socket, &word, 1, 0));
	if (got == 1)
		return;
	if (barrier->abandoned != NULL)
		barrier->abandoned(barrier->context);
	_exit(EXIT_FAILURE);
}

pid_t start_barrier_start(struct start_barrier *barrier, sigset_t *mask)
{
	sigset_t before;
	int ends[2];
	pid_t pid;

	if (descriptor_socket_pair(ends) != 0)
		return -1;
	signals_block_all(&before);
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
	ssize_t bytes;

	UNINTERRUPTED(bytes, send(barrier->socket, "", 1, MSG_NOSIGNAL));
	if (bytes != 1) {
		close(barrier->socket); /* else the child, still at the barrier, and this process would wait for each other */
		return -1;
	}
	CRASH_POINT("start_barrier.opened");
	UNINTERRUPTED(bytes, recv(barrier->socket, &errnum, sizeof errnum, 0));
	if (bytes != (ssize_t)sizeof errnum)
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
