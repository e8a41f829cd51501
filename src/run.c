#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "ending.h"
#include "events.h"
#include "keeper.h"
#include "lease.h"
#include "messages.h"
#include "report.h"
#include "run.h"
#include "several.h"

/* What has to be looked after while the command runs. */
struct watch {
	struct keeper keeper;
	struct lease lease;
};

/* Who has asked for it relies on it; others are told that it is not done. */
static int keep(struct keeper *keeper, const struct job *job, struct why *why)
{
	const struct options *opt = job->opt;

	if (keeper_start(keeper, job->locks, opt->nlocks, opt->stale, opt->on_lost, job->bearer.pid, why) == 0)
		return 0;
	if (opt->stale > 0 || opt->on_lost != 0)
		return -1;
	complain("%s: %s", opt->label, why->text);
	return 0;
}

static int watch_start(struct watch *watch, const struct job *job, struct why *why)
{
	watch->lease.running = false;
	if (keep(&watch->keeper, job, why) != 0)
		return -1;
	if (job->locks->smith == NULL)
		return 0;
	return lease_start(&watch->lease, job->locks, job->opt->label, job->bearer.pid, why);
}

static void watch_stop(struct watch *watch)
{
	keeper_stop(&watch->keeper);
	lease_stop(&watch->lease);
}

/* Who only holds is no program to be started: it always stands at the gate first. */
static int start_holding(struct job *job, struct why *why)
{
	if (job->opt->hold && job->bearer.pid == 0)
		job->bearer.pid = job->bearer.start(&job->bearer, why);
	return job->bearer.pid < 0 ? -1 : 0;
}

/* A process's own lock is dropped as soon as any descriptor of its file is closed, by an exec too. */
static void keep_events_open(const struct job *job)
{
	struct stat file;
	int fd = events_descriptor();

	if ((job->opt->method->can & OWNED_BY_PROCESS) == 0 || fd < 0 || fstat(fd, &file) != 0)
		return;
	for (unsigned i = 0; i < job->opt->nlocks; i++)
		if (file.st_dev == job->locks[i].device && file.st_ino == job->locks[i].inode)
			fcntl(fd, F_SETFD, 0);
}

int run(struct job *job)
{
	const struct options *opt = job->opt;
	struct ending ending;
	struct watch watch;
	struct why why;

	if (!opt->hold && job->command.nlocks > 0 && job->bearer.pid == 0 &&
	    job_give_locks(job, &why) != 0)
		ending_in_trouble(opt, &why);
	if (start_holding(job, &why) != 0)
		ending_in_trouble(opt, &why);
	if (!opt->hold)
		messages_running(opt);
	if (opt->become) {
		keep_events_open(job);
		command_become(&job->command);
		return ending_status(opt, &(struct ending){.how = ENDED_NOT_RUN, .code = errno});
	}
	if (watch_start(&watch, job, &why) != 0) {
		command_cancel(&job->command);
		several_forget(job->locks, opt->nlocks);
		ending_in_trouble(opt, &why);
	}
	if (command_watch(&job->command, &ending, &why) != 0)
		ending_in_trouble(opt, &why);
	watch_stop(&watch);
	return ending_status(opt, &ending);
}
