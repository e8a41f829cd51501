/* SPDX-License-Identifier: MIT */
/* inotify reports changes of the directory, a pidfd the holder's death.  Either can be missing (no
 * permission, no such call, a holder on another host), and neither reports that a lock has grown old.
 * So the waiter looks at the lock every second as well; without notification after a millisecond,
 * then ever less often, up to every tenth of a second.
 *
 * The kernel takes ten milliseconds to close an inotify descriptor: it is opened for foreign holders
 * only, and closed after the release. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "sys/deadline.h"
#include "methods/file/foreign_holder.h"
#include "sys/process.h"

#define LONGEST_PAUSE (SECOND / 10)

static int watch_directory(const struct lock *lock)
{
	char path[40];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", lock->directory);
	if (inotify_add_watch(fd, path, IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE) >= 0)
		return fd;
	close(fd);
	return -1;
}

/* Read the events: may one of them be about the lock's name? */
static bool concerns_us(const struct lock *lock)
{
	_Alignas(struct inotify_event) char events[4096];
	const struct inotify_event *event;
	ssize_t got = read(lock->file->notify, events, sizeof events);
	size_t length = strlen(lock->id.entry);

	for (char *p = events; got > 0 && p < events + got; p += sizeof *event + event->len) {
		event = (const struct inotify_event *)(const void *)p;
		if ((event->mask & (IN_Q_OVERFLOW | IN_IGNORED)) != 0 ||
		    (event->len > 0 && strncmp(event->name, lock->id.entry, length) == 0))
			return true;
	}
	return false;
}

static int next_pause(struct file_lock *file, bool notified)
{
	if (notified)
		return 1000;
	if (file->pause < MILLISECOND)
		file->pause = MILLISECOND;
	else if (file->pause < LONGEST_PAUSE)
		file->pause *= 2;
	return (int)(file->pause / MILLISECOND);
}

static enum outcome sleep_until_change(struct lock *lock, int process, bool notified)
{
	struct pollfd sources[2] = {
	    {.fd = lock->file->notify, .events = POLLIN},
	    {.fd = process, .events = POLLIN},
	};
	int left = next_pause(lock->file, notified), ready;
	struct deadline look_anyway = deadline_after(left * MILLISECOND);

	do {
		ready = poll(sources, 2, left);
		if (ready < 0)
			return errno == EINTR ? BUSY : AGAIN;
		if (ready == 0 || sources[1].revents != 0 || concerns_us(lock))
			return AGAIN;
		left = (int)(deadline_left(&look_anyway) / MILLISECOND);
	} while (left > 0); /* only other files have changed */
	return AGAIN;
}

enum outcome foreign_holder_await(struct lock *lock, pid_t pid, bool dies_with_it)
{
	struct file_lock *file = lock->file;
	enum outcome outcome;
	int process = pid > 0 ? pidfd_of(pid) : -1;

	if (process < 0 && pid > 0 && errno == ESRCH)
		return AGAIN;
	if (process < 0)
		dies_with_it = false;
	if (!dies_with_it && file->notify < 0 && file->pause == 0) {
		file->notify = watch_directory(lock);
		file->pause = 1;
		outcome = AGAIN;
	} else {
		outcome = sleep_until_change(lock, process,
		    dies_with_it || (file->notify >= 0 && file->local));
	}
	if (process >= 0)
		close(process);
	return outcome;
}

int foreign_holder_listen(struct lock *lock)
{
	struct file_lock *file = lock->file;

	if (file->notify < 0)
		file->notify = watch_directory(lock);
	return file->notify;
}

void foreign_holder_forget(struct file_lock *file)
{
	if (file->notify >= 0)
		close(file->notify);
	file->notify = -1;
	file->pause = 0;
}
