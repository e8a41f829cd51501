/* SPDX-License-Identifier: MIT */
/* semlock - run a command while holding a lock.  The whole story, in order. */
#include <config.h>

#include <signal.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "run/run.h"
#include "run/subreaper.h"
#include "run/who.h"
#include "cli/read_request.h"
#include "lock/lockset.h"
#include "report/error.h"
#include "sys/signals.h"

/* The command inherits no descriptor that would keep the lock when semlock is killed, or its lease
 * needs semlock. */
static bool dies_with_semlock(const struct request *request)
{
	return (request->close_fd || request->spec.method->family == ON_SERVER ||
		   (request->spec.method->can & OWNED_BY_PROCESS) != 0) &&
	       request->command != NULL && request->locks[0].name != NULL && !request->become &&
	       !request->unlock;
}

/* Release LOCKS.  Returns what becomes of STATUS. */
static int release_locks(const struct request *request, struct lock *locks, int status)
{
	const struct method *method = request->spec.method;

	if (request->unlock)
		return status;
	for (unsigned i = 0; i < request->nlocks && method->family == OF_KERNEL; i++)
		/* on NFS, the server may have given it away */
		locks[i].end.lost = !method->owned(&locks[i]);
	/* The process's end releases a kernel lock, too, before a parent sees that end: that saves
	 * a call. */
	if (method->family == OF_KERNEL && !request->spec.to_be_removed)
		return result_if_lost(request, locks, status);
	lockset_release(locks, request->nlocks);
	status = result_if_lost(request, locks, status);
	for (unsigned i = 0; i < request->nlocks; i++) {
		/* a lost lock needs no release */
		if (locks[i].end.stuck != 0 && status != EXIT_LOST)
			complain("%s: cannot release the lock: %s",
			    messages_label(request, &locks[i]), method->stuck_reason(&locks[i]));
		if (locks[i].end.littered)
			complain("%s: files were put into it: they are left beside it, in a "
				 "directory .*.semlock.gone.*",
			    messages_label(request, &locks[i]));
		if (request->spec.to_be_removed && method->family == OF_KERNEL &&
		    !method->remove(&locks[i]))
			complain("%s: not removed: the file is not empty",
			    messages_label(request, &locks[i]));
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct request request; /* static: used until the process ends, also by threads */
	static struct job job;
	struct acquired acquired = {ACQUIRED_LOCKS, EXIT_SUCCESS};
	struct error error;
	pid_t holder;
	int status;

	request_read(&request, argc, argv);
	if (!request.as_flock && strcmp(program_invocation_short_name, "semlock") != 0)
		prctl(PR_SET_NAME, "semlock"); /* --who and --replace know semlock by this name */
	if (request.who)
		who(&request);
	if (request.log != NULL)
		log_open(&request);
	/* if it is ignored, no status can be waited for: neither here nor in the command */
	signal(SIGCHLD, SIG_DFL);
	if (request.dies_with_parent && !parent_watch()) {
		complain("--die-with-parent: the process that started it has ended");
		return result_die_of(128 + SIGTERM, SIGTERM);
	}
	holder = dies_with_semlock(&request) ? subreaper_start(&error) : 0;
	if (holder > 0)
		return run_subreaper(holder);
	if (holder < 0 || job_make(&job, &request, &error) != 0 ||
	    (request.unlock && job_unlock(&job, &error) != 0))
		return log_write(&request, NULL, result_of_error(&request, NULL, &error));
	if (request.hold && !hold_for(request.owner))
		return EXIT_USAGE;
	if (!request.unlock)
		acquired = acquire(&job);
	if (acquired.how == ACQUIRED_NOTHING) {
		command_reap(&job.command);
		return log_write(&request, &job, acquired.status);
	}
	if (request.hold)
		hold_taken();
	if (request.command == NULL && !request.hold)
		return EXIT_SUCCESS; /* the caller's descriptor stays locked */
	if (acquired.how == ACQUIRED_BY_INHERITANCE)
		job.command.nlocks = 0;
	status = run(&job, &error);
	if (acquired.how == ACQUIRED_LOCKS)
		status = release_locks(&request, job.locks, status);
	/* after the release: until then the command's PID, which a lock may name, is its own */
	command_reap(&job.command);
	if (request.log != NULL)
		log_write(&request, &job, status);
	return result_die_of(status, job.died_of);
}
