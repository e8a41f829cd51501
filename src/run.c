#include <config.h>

#include <errno.h>
#include <signal.h>

#include "ending.h"
#include "keeper.h"
#include "lease.h"
#include "messages.h"
#include "run.h"

/* What has to be looked after while the command runs. */
struct watch {
	struct keeper keeper;
	struct lease lease;
};

static void watch_start(struct watch *watch, const struct job *job)
{
	const struct options *opt = job->opt;
	struct lock *lock = job->locks;
	struct why why;

	watch->lease.running = false;
	/* The watcher of a tether has its own idea of what is to be done: it is told, in any case. */
	keeper_start(&watch->keeper, lock, opt->nlocks, opt->stale, opt->tether >= 0 ? SIGTERM : opt->on_lost,
	    job->bearer.pid);
	if (lock->smith != NULL && lease_start(&watch->lease, lock, opt->label, job->bearer.pid, &why) != 0)
		ending_in_trouble(opt, &why);
}

static void watch_stop(struct watch *watch)
{
	keeper_stop(&watch->keeper);
	lease_stop(&watch->lease);
}

/* Who only holds is no program to be started: it always stands at the gate first. */
static int start_holding(struct job *job, struct why *why)
{
	if (job->opt->stands && job->bearer.pid == 0)
		job->bearer.pid = job->bearer.start(&job->bearer, why);
	return job->bearer.pid < 0 ? -1 : 0;
}

int run(struct job *job)
{
	const struct options *opt = job->opt;
	struct ending ending;
	struct watch watch;
	struct why why;

	if (job->command.nlocks > 0 && job->bearer.pid == 0 && job_give_locks(job, &why) != 0)
		ending_in_trouble(opt, &why);
	if (start_holding(job, &why) != 0)
		ending_in_trouble(opt, &why);
	if (!opt->stands)
		messages_running(opt);
	if (opt->become) {
		command_become(&job->command);
		return ending_status(opt, &(struct ending){.how = ENDED_NOT_RUN, .code = errno});
	}
	watch_start(&watch, job);
	if (command_watch(&job->command, &ending, &why) != 0)
		ending_in_trouble(opt, &why);
	watch_stop(&watch);
	if (opt->tether >= 0 && ending.how == ENDED_SIGNAL)
		tether_orphaned(&job->tether);
	return ending_status(opt, &ending);
}
