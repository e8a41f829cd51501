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

bool targets_of_flock(const struct owner *holder)
{
	struct procfs_stat supervisor;

	return holder->kind != 0 && process_stat(holder->supervisor, &supervisor) &&
	       name_is_flock(supervisor.name);
}

pid_t targets_choose(const struct owner *holder, int signo)
{
	struct procfs_stat supervisor;

	if (holder->supervisor == 0 || !owner_has(holder, holder->supervisor))
		return holder->process.pid;
	if (!owner_has(holder, holder->process.pid))
		return targets_of_flock(holder) ? holder->process.pid : holder->supervisor;
	if (signo != SIGKILL && process_stat(holder->supervisor, &supervisor) &&
	    name_is_semlock(supervisor.name))
		return holder->supervisor;
	return holder->process.pid;
}

/* Can root alone open LOCK?  Its mode, or that of a directory above it, can keep other users
 * out. */
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

/* Returns the taker of HOLDER's kernel lock if it is alive and holds the lock, else 0.  The kernel
 * names no taker of an OFD lock: there, take the semlock or flock(1) that runs the command or, once
 * the command has ended, HOLDER's process, if it is a semlock (--min-hold). */
static pid_t living_taker(const struct owner *holder)
{
	pid_t taker = holder->taker;

	if (holder->kind == KIND_OFD && taker <= 0)
		taker = holder->supervisor == 0 && name_is_semlock(holder->process.name)
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
		return "belongs to another user and has the lock's descriptor, but did not take "
		       "the lock itself";
	if (process.real_user == 0 && !is_roots_alone(lock))
		return "did not take the lock itself, and may have its descriptor from another "
		       "user, who can open the lock";
	return NULL;
}

bool targets_may_yield(const struct owners *found, const struct owner *holder,
    const struct lock *lock)
{
	struct allowance limit = allowance_begins(0, deadline_never());
	bool yields = false, blind = holder->process.pid == 0;
	char path[QUEUE_PATH_SIZE];
	struct tickets tickets;

	queuefile_path(lock, path);
	if (queue_list(&tickets, path, &limit) != 0 || tickets.failed)
		return true; /* not known whether it has a ticket: look at the holder again */
	/* If the lock is on a caller's descriptor, a child of the script that holds it has the
	 * ticket: so look for the tickets of all members of HOLDER. */
	for (size_t i = 0; i < holder->nmembers && !yields; i++)
		yields =
		    /* this process may be a member, if it has inherited a caller's descriptor */
		    holder->members[i].pid != getpid() &&
		    tickets_include(&tickets, holder->members[i].pid);
	free(tickets.list);
	for (size_t i = found->holders; i < found->count; i++)
		yields = yields || (blind && found->list[i].process.pid != getpid());
	return yields;
}
