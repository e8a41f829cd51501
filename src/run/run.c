#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "run/result.h"
#include "report/status_fd.h"
#include "methods/file/heartbeat.h"
#include "methods/server/lease.h"
#include "methods/server/locksmith.h"
#include "run/messages.h"
#include "run/relay.h"
#include "report/error.h"
#include "run/run.h"
#include "lock/lockset.h"

/* What has to be looked after while the command runs. */
struct monitors {
	struct heartbeat heartbeat;
	struct lease lease;
};

/* Who has asked for it relies on it; others are told that it is not done. */
static int keep(struct heartbeat *heartbeat, const struct job *job, struct error *error)
{
	const struct request *request = job->request;

	if (heartbeat_start(heartbeat, job->locks, request->nlocks, request->stale, request->on_lost, job->child.pid, error) == 0)
		return 0;
	if (request->stale > 0 || request->on_lost != 0)
		return -1;
	complain("%s: %s", request->label, error->text);
	return 0;
}

static int monitors_start(struct monitors *monitors, const struct job *job, struct error *error)
{
	monitors->lease.running = false;
	if (keep(&monitors->heartbeat, job, error) != 0)
		return -1;
	if (job->locks->smith == NULL)
		return 0;
	return lease_start(&monitors->lease, job->locks, job->request->label, job->child.pid, error);
}

static void monitors_stop(struct monitors *monitors)
{
	heartbeat_stop(&monitors->heartbeat);
	lease_stop(&monitors->lease);
}

/* Who only holds is no program to be started: it always stands at the gate first. */
static int start_holding(struct job *job, struct error *error)
{
	if (job->request->hold && job->child.pid == 0)
		job->child.pid = job->child.start(&job->child, error);
	return job->child.pid < 0 ? -1 : 0;
}

/* A process's own lock is dropped as soon as any descriptor of its file is closed, by an exec too. */
static void keep_events_open(const struct job *job)
{
	struct stat file;
	int fd = events_descriptor();

	if ((job->request->method->can & OWNED_BY_PROCESS) == 0 || fd < 0 || fstat(fd, &file) != 0)
		return;
	for (unsigned i = 0; i < job->request->nlocks; i++)
		if (file.st_dev == job->locks[i].device && file.st_ino == job->locks[i].inode)
			fcntl(fd, F_SETFD, 0);
}

int run(struct job *job)
{
	const struct request *request = job->request;
	struct result result;
	struct monitors monitors;
	struct error error;

	if (!request->hold && job->command.nlocks > 0 && job->child.pid == 0 &&
	    job_give_locks(job, &error) != 0)
		result_of_error(request, &error);
	if (start_holding(job, &error) != 0)
		result_of_error(request, &error);
	if (!request->hold)
		messages_running(request);
	if (request->become) {
		keep_events_open(job);
		command_become(&job->command);
		return result_status(request, &(struct result){.how = ENDED_NOT_RUN, .code = errno});
	}
	if (monitors_start(&monitors, job, &error) != 0) {
		command_cancel(&job->command);
		lockset_forget(job->locks, request->nlocks);
		result_of_error(request, &error);
	}
	relay_command_starts(job->locks->smith != NULL ? job->locks->smith->pid : 0);
	if (command_supervise(&job->command, &result, &error) != 0)
		result_of_error(request, &error);
	monitors_stop(&monitors);
	job->died_of = result.ours ? result.code : 0;
	return result_status(request, &result);
}
