/* semlock - run a command while holding a lock.  The whole story, in order. */
#include <config.h>

#include <stdlib.h>

#include "check.h"
#include "ending.h"
#include "exitcode.h"
#include "hold.h"
#include "job.h"
#include "lockfile.h"
#include "obtain.h"
#include "options.h"
#include "report.h"
#include "run.h"
#include "several.h"
#include "who.h"

static int undo(const struct options *opt, struct lock *lock)
{
	struct why why;

	if (lock_undo(lock, &why) != 0)
		ending_in_trouble(opt, &why);
	return EXIT_SUCCESS;
}

/* The end of the process lets go of a kernel lock, too, and before anybody can hear of that end:
 * where nothing follows it, that saves a call. */
static bool ends_with_us(const struct options *opt)
{
	return !opt->remove && (opt->method->can & (LEAVES_RECORD | ON_SERVER)) == 0;
}

static const char *why_stuck(const struct options *opt)
{
	if ((opt->method->can & ON_SERVER) != 0)
		return "the server could not be told that the lock is free; it will be when the lease ends";
	return "not let go: a semlock that took it for abandoned has been stopped, and keeps its guard; "
	       "it is free when that one goes on, or ends";
}

static int finish(const struct options *opt, struct lock *locks, int status)
{
	if (ends_with_us(opt))
		return status;
	several_forget(locks, opt->nlocks);
	status = ending_if_lost(opt, locks, status);
	for (unsigned i = 0; i < opt->nlocks; i++)
		if (locks[i].stuck)
			complain("%s: %s", obtain_label(opt, &locks[i]), why_stuck(opt));
	if (opt->remove && (opt->method->can & LEAVES_RECORD) == 0)
		for (unsigned i = 0; i < opt->nlocks; i++)
			lockfile_remove(&locks[i]);
	return status;
}

int main(int argc, char **argv)
{
	static struct options opt; /* static: all of it lasts as long as the process, on all ways out */
	static struct job job;
	bool under_ancestor = false;
	int status = OBTAINED;

	options_parse(&opt, argc, argv);
	if (opt.who)
		return who(&opt);
	if (opt.check)
		return check(&opt);
	job_make(&job, &opt);
	if (opt.unlock && opt.locks[0].name == NULL)
		return undo(&opt, job.locks);
	job_make_stand(&job);
	if (!opt.unlock)
		status = obtain(&opt, job.locks, &under_ancestor);
	if (status != OBTAINED) {
		command_cancel(&job.command);
		return status;
	}
	hold_taken();
	if (opt.command == NULL && !opt.hold)
		return EXIT_SUCCESS; /* the caller's descriptor stays locked */
	if (under_ancestor) {
		job.command.nlocks = 0;
		return run(&job);
	}
	return finish(&opt, job.locks, run(&job));
}
