/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "sys/files.h"
#include "sys/process.h"
#include "sys/waiting.h"

int poll_until(struct pollfd *fds, nfds_t count, struct deadline until)
{
	int ready, errnum;

	do {
		UNINTERRUPTED(ready, poll(fds, count, deadline_poll_time(&until)));
	} while (ready == 0 && deadline_left(&until) > 0); /* poll(2) sleeps 24 days at most */
	if (ready >= 0)
		return ready;
	errnum = errno;
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = 0;
	errno = errnum;
	return -1;
}

bool thread_sleeps(struct pollfd *fds, nfds_t count, nfds_t end, int timeout)
{
	enum { LONGEST = 100 /* ms */ };
	struct timespec pause = {0,
	    (timeout < 0 || timeout > LONGEST ? LONGEST : timeout) * (long)MILLISECOND};
	char byte;

	if (poll(fds, count, timeout) >= 0)
		return fds[end].revents != 0;
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = 0;
	if (errno == EINTR)
		return false;
	fcntl(fds[end].fd, F_SETFL, O_NONBLOCK);
	nanosleep(&pause, NULL);
	return read(fds[end].fd, &byte, 1) == 0;
}

int nap(int64_t duration)
{
	struct timespec time = {(time_t)(duration / SECOND), (long)(duration % SECOND)};
	int ms = (int)((duration + MILLISECOND - 1) / MILLISECOND);

	if (nanosleep(&time, NULL) == 0)
		return 0;
	return errno == EINTR ? -1 : poll(NULL, 0, ms);
}

int watched_begin(struct watched *watched, pid_t pid)
{
	struct procfs_stat seen;

	*watched = (struct watched){.pid = pid, .pidfd = -1};
	if (pid == 0)
		return 0;
	watched->pidfd = descriptor_above_standard(pidfd_of(pid));
	if (process_numbers_ours() && process_stat(pid, &seen))
		watched->started = seen.started;
	return watched_ended(watched) || (kill(pid, 0) != 0 && errno == ESRCH) ? -1 : 0;
}

bool watched_ended(const struct watched *watched)
{
	struct pollfd end = {watched->pidfd, POLLIN, 0};
	struct procfs_stat seen;
	int ready = -1;

	if (watched->pid == 0)
		return false;
	if (watched->pidfd >= 0)
		ready = poll_until(&end, 1, deadline_after(0));
	if (ready >= 0)
		return ready > 0;
	if (watched->started != 0)
		return !process_stat(watched->pid, &seen) || procfs_ended(seen.state) ||
		       seen.started != watched->started;
	return kill(watched->pid, 0) != 0 && errno == ESRCH;
}

struct deadline watched_next_look(const struct watched *watched)
{
	return watched->pid > 0 && watched->pidfd < 0 ? deadline_after(SECOND) : deadline_never();
}
