/* semlock - run a command while holding a lock.  The whole story, in order. */
#include <config.h>

#include <signal.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "owners/check.h"
#include "run/result.h"
#include "report/exitcode.h"
#include "run/hold.h"
#include "run/job.h"
#include "lock/lockfile.h"
#include "run/acquire.h"
#include "cli/options.h"
#include "run/relay.h"
#include "report/error.h"
#include "run/run.h"
#include "lock/lockset.h"
#include "owners/who.h"

static void undo(const struct request *request, struct lock *lock)
{
	struct error error;

	if (lock_undo(lock, &error) != 0)
		result_of_error(request, &error);
}

/* The end of the process lets go of a kernel lock, too, and before anybody can hear of that end:
 * where nothing follows it, that saves a call. */
static bool ends_with_us(const struct request *request)
{
	return !request->remove && (request->method->can & (LEAVES_RECORD | ON_SERVER)) == 0;
}

/* The command gets no descriptor that keeps the lock when semlock is killed. */
static bool dies_with_us(const struct request *request)
{
	return (request->close_fd || (request->method->can & OWNED_BY_PROCESS) != 0) && request->command != NULL &&
	       request->locks[0].name != NULL && !request->become && !request->unlock;
}

static const char *stuck_reason(const struct request *request)
{
	if ((request->method->can & ON_SERVER) != 0)
		return "the server could not be told that the lock is free; it will be when the lease ends";
	return "not let go: a semlock that took it for abandoned has been stopped, and keeps its guard; "
	       "it is free when that one goes on, or ends";
}

static int finish(const struct request *request, struct lock *locks, int status)
{
	if (ends_with_us(request))
		return status;
	lockset_forget(locks, request->nlocks);
	status = result_if_lost(request, locks, status);
	for (unsigned i = 0; i < request->nlocks; i++)
		if (locks[i].stuck)
			complain("%s: %s", acquire_label(request, &locks[i]), stuck_reason(request));
	if (request->remove && (request->method->can & LEAVES_RECORD) == 0)
		for (unsigned i = 0; i < request->nlocks; i++)
			if (!lockfile_remove(&locks[i]))
				complain("%s: not removed: the file is not empty", acquire_label(request, &locks[i]));
	return status;
}

int main(int argc, char **argv)
{
	static struct request request; /* static: all of it lasts as long as the process, on all ways out */
	static struct job job;
	bool under_ancestor = false;
	int status = ACQUIRED;

	request_read(&request, argc, argv);
	if (!request.as_flock && strcmp(program_invocation_short_name, "semlock") != 0)
		prctl(PR_SET_NAME, "semlock"); /* --who and --replace know a wrapper by this */
	if (request.who)
		return who(&request);
	if (request.check)
		return check(&request);
	signal(SIGCHLD, SIG_DFL); /* if it is ignored, no status can be waited for: neither here nor in the command */
	if (dies_with_us(&request))
		relay_start();
	job_make(&job, &request);
	if (request.unlock && request.locks[0].name == NULL)
		undo(&request, job.locks);
	job_make_stand(&job);
	if (!request.unlock)
		status = acquire(&request, job.locks, &under_ancestor);
	if (status != ACQUIRED) {
		command_cancel(&job.command);
		return status;
	}
	hold_taken();
	if (request.command == NULL && !request.hold)
		return EXIT_SUCCESS; /* the caller's descriptor stays locked */
	if (under_ancestor)
		job.command.nlocks = 0;
	status = run(&job);
	if (!under_ancestor)
		status = finish(&request, job.locks, status);
	return ending_as(status, job.died_of);
}
