/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/start.h"
#include "run/run.h"
#include "run/subreaper.h"
#include "lock/lockset.h"
#include "methods/server/locksmith.h"
#include "sys/crash_points.h"
#include "sys/memory.h"
#include "report/error.h"
#include "report/status_fd.h"

/* In the foreground of a terminal, the command has to stay in the group that the keyboard
 * signals. */
static bool in_foreground(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	bool foreground = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();

	if (terminal >= 0)
		close(terminal);
	return foreground;
}

/* Put the locks into the command's environment.  Returns 0, or -1 with ERROR filled. */
static int tell_locks(struct job *job, struct error *error)
{
	const struct lock *first = lockset_covering(job->locks, job->request->nlocks);

	job->slot = first->slot;
	return environment_set(first, job->request->label, error);
}

int job_start_child(struct job *job, struct error *error)
{
	pid_t pid;

	if (tell_locks(job, error) != 0)
		return -1;
	pid = command_prepare(&job->command, error);
	if (pid < 0)
		return -1;
	job->child.pid = pid;
	return 0;
}

int job_make(struct job *job, const struct request *request, struct error *error)
{
	bool held_by_semlock =
	    request->close_fd || (request->spec.method->can & OWNED_BY_PROCESS) != 0;

	*job = (struct job){.request = request, .slot = -1};
	job->command = (struct command){
	    .argv = request->command,
	    .nlocks = request->nlocks,
	    .inherit = request->become || !held_by_semlock,
	    .cloexec_is_set =
		request->locks[0].name != NULL && request->spec.method->family == OF_KERNEL,
	    .tie = held_by_semlock || request->spec.method->family == ON_SERVER,
	    .named = request->spec.method->family != OF_KERNEL,
	    .limit = {request->run_timeout, request->signal == 0 ? SIGTERM : request->signal,
		request->kill_after},
	    .own_group =
		(request->run_timeout > 0 || request->dies_with_parent) && !in_foreground(),
	    .placeholder = request->hold ? hold_until_end : NULL,
	};
	job->child = (struct child){
	    .inherits = job->command.inherit,
	    .semlock = job->command.named ? subreaper_or_self() : 0,
	};
	job->locks = memory_lasting(request->nlocks * sizeof *job->locks);
	if (job->locks == NULL)
		return error_plain(error, ERROR_SYSTEM, "no memory");
	job->command.locks = job->locks;
	for (unsigned i = 0; i < request->nlocks; i++) {
		job->locks[i] = LOCK_OF(&request->locks[i]);
		job->locks[i].child = &job->child;
	}
	return 0;
}

static void report_loss(const struct lock *lock)
{
	complain("%s: another process has removed the lock while the command runs",
	    lock->spec->name);
}

/* Start the method's guard of the locks, for as long as the command runs.  Returns 0, or -1 with
 * ERROR filled. */
static int guard_locks(const struct job *job, struct error *error)
{
	const struct request *request = job->request;
	const struct guard guard = {
	    .locks = job->locks,
	    .count = request->nlocks,
	    .label = request->label,
	    .command = job->child.pid,
	    .on_lost = request->on_lost,
	    .report = report_loss,
	};
	int guarded = request->spec.method->guard(&guard, error);

	if (guarded > 0)
		complain("%s: %s", request->label, error->text);
	return guarded < 0 ? -1 : 0;
}

/* The locks are held: put them into the command's environment; fork the placeholder of --hold, up
 * to its start barrier.  Returns 0, or -1 with ERROR filled. */
static int prepare_command(struct job *job, struct error *error)
{
	if (job->child.pid > 0)
		return 0;
	if (job->request->hold)
		return job_start_child(job, error);
	return job->command.nlocks > 0 && !job->request->unlock ? tell_locks(job, error) : 0;
}

static int become(const struct job *job)
{
	struct stat file;

	/* Closing any descriptor of a file, by exec too, drops the process's own (POSIX) locks on
	 * it. */
	if ((job->request->spec.method->can & OWNED_BY_PROCESS) != 0 && status_fd >= 0 &&
	    fstat(status_fd, &file) == 0)
		for (unsigned i = 0; i < job->request->nlocks; i++)
			if (file.st_dev == job->locks[i].id.device &&
			    file.st_ino == job->locks[i].id.inode)
				fcntl(status_fd, F_SETFD, 0);
	command_become(&job->command);
	return result_status(job->request, &(struct result){.how = ENDED_NOT_RUN, .code = errno});
}

int run(struct job *job, struct error *error)
{
	const struct request *request = job->request;
	const struct locksmith *helper = job->locks->server.helper;
	const bool guarded = request->spec.method->family != OF_KERNEL && job->command.nlocks > 0;
	struct result result;
	pid_t pid;

	if (prepare_command(job, error) != 0)
		return result_of_error(request, NULL, error);
	if (request->verbose && request->as_flock)
		tell(STDOUT_FILENO, "executing %s", request->command[0]);
	else if (request->verbose && !request->hold)
		complain("%s: running %s", request->label, request->command[0]);
	if (request->become)
		return become(job);
	/* The subreaper, too, keeps the helper's input open: the helper lets go only after all that
	 * the subreaper has to end. Before the guard, which tells a helper that the command may
	 * run. */
	if ((job->command.tie && subreaper_command_starts(helper == NULL ? -1 : helper->in,
				     helper == NULL ? 0 : helper->pid, error) != 0) ||
	    (guarded && guard_locks(job, error) != 0)) {
		if (job->command.tie)
			subreaper_command_ended();
		return result_of_error(request, NULL, error);
	}
	pid = command_start(&job->command, &result, error);
	if (pid > 0) {
		job->child.pid = pid;
		result = supervise(&job->command, pid);
		job->command.unreaped = job->command.named ? pid : 0;
		CRASH_POINT("command.ended");
	}
	if (pid >= 0 && request->min_hold > 0 && result.how != ENDED_NOT_RUN && !result.asked)
		held_at_least(request->min_hold);
	if (job->command.tie)
		subreaper_command_ended();
	if (guarded)
		request->spec.method->unguard();
	if (pid < 0)
		return result_of_error(request, NULL, error);
	job->died_of = result.received ? result.code : 0;
	return result_status(request, &result);
}

int run_subreaper(pid_t holder)
{
	static const struct command not_tied;
	struct result result = supervise(&not_tied, holder);

	if (result.how == ENDED_EXIT)
		return result.code;
	if (result.code == SIGKILL)
		subreaper_end_all(0);
	return result_die_of(128 + result.code, result.code);
}
