/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/queue.h"
#include "preempt/targets.h"
#include "sys/open_fds.h"

bool targets_of_flock(const struct owner *holder)
{
	struct procfs_stat supervisor;

	return holder->kind != 0 && process_stat(holder->supervisor, &supervisor) &&
	       strcmp(supervisor.name, "flock") == 0;
}

pid_t targets_choose(const struct owner *holder, int signo)
{
	struct procfs_stat supervisor;

	if (holder->supervisor == 0 || !owner_has(holder, holder->supervisor))
		return holder->process.pid;
	if (!owner_has(holder, holder->process.pid))
		return targets_of_flock(holder) ? holder->process.pid : holder->supervisor;
	if (signo != SIGKILL && process_stat(holder->supervisor, &supervisor) &&
	    strcmp(supervisor.name, "semlock") == 0)
		return holder->supervisor;
	return holder->process.pid;
}

/* Can no user but root open LOCK?  Its own mode keeps them out, or that of a directory above it. */
static bool is_roots_alone(const struct lock *lock)
{
	char self[40], *path, *slash;
	struct stat file;
	bool alone = false, is_lock = true;

	snprintf(self, sizeof self, "/proc/self/fd/%d", lock->spec->fd);
	path = realpath(lock->spec->name != NULL ? lock->spec->name : self, NULL);
	while (path != NULL && !alone && stat(*path == '\0' ? "/" : path, &file) == 0) {
		alone = file.st_uid == 0 &&
		        (file.st_mode & (is_lock ? S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH
						 : S_IXGRP | S_IXOTH)) == 0;
		is_lock = false;
		slash = strrchr(path, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	free(path);
	return alone;
}

/* The taker of HOLDER's kernel lock, if it lives and has the lock; else 0.  After its command's
 * end, a semlock is the holder itself (--min-hold). */
static pid_t living_taker(const struct owner *holder)
{
	pid_t taker = holder->taker;

	if (holder->kind == KIND_OFD && taker <= 0)
		taker = holder->supervisor == 0 && strcmp(holder->process.name, "semlock") == 0
		            ? holder->process.pid
		            : holder->supervisor;

	return taker > 0 && owner_has(holder, taker) ? taker : 0;
}

bool targets_is_of_job(const struct owner *holder, pid_t pid)
{
	pid_t taker = living_taker(holder);
	struct process process, of_taker;

	if (holder->kind == 0 || taker == 0 || !process_read(taker, &of_taker) ||
	    !process_read(pid, &process))
		return false;
	return pid == taker ||
	       ((of_taker.real_user == getuid() || of_taker.real_user == process.real_user) &&
		   process_descends(pid, taker, 0, 0));
}

const char *targets_unproven(const struct owner *holder, pid_t pid, const struct lock *lock)
{
	pid_t taker = living_taker(holder);
	struct process process;

	if (holder->kind == 0 || !process_read(pid, &process))
		return NULL;
	if (taker > 0 && (pid == taker || (taker == holder->supervisor && process.parent == taker)))
		return NULL;
	if (process.real_user != getuid())
		return "is another user's, and has the lock's descriptor, but has not taken the "
		       "lock itself";
	if (process.real_user == 0 && !is_roots_alone(lock))
		return "has the lock's descriptor, but has not taken the lock itself, and other "
		       "users can open the lock, "
		       "and may have passed it on";
	return NULL;
}

/* Has PID a ticket in the queue in FILE?  *BLIND: its descriptors cannot be seen. */
static bool has_ticket(pid_t pid, const struct identity *file, bool *blind)
{
	struct open_fds open_fds = {.files = file, .nfiles = 1};
	bool ticket = false;

	open_fds_of(&open_fds, pid);
	*blind = *blind || open_fds.seen > SEEN_ALL;
	for (size_t i = 0; i < open_fds.count; i++)
		ticket = ticket || (open_fds.list[i].locked && open_fds.list[i].lock.exclusive);
	open_fds_forget(&open_fds);
	return ticket;
}

bool targets_may_yield(const struct owners *found, const struct owner *holder,
    const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	struct stat queue;
	struct identity file;
	bool blind = holder->process.pid == 0;

	queuefile_path(lock, path);
	if (stat(path, &queue) != 0)
		return false;
	file = (struct identity){queue.st_dev, queue.st_ino};
	/* With a caller's descriptor, the ticket is a child's of the script that has the lock. */
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid != getpid() && /* the caller's descriptor, inherited */
		    has_ticket(holder->members[i].pid, &file, &blind))
			return true;
	for (size_t i = found->holders; i < found->count; i++)
		if (blind && found->list[i].process.pid != getpid())
			return true;
	return false;
}
