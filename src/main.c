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
#include "relay.h"
#include "report.h"
#include "run.h"
#include "several.h"
#include "tie.h"
#include "who.h"

/* The caller's descriptor is let go, and with it what is tied to it. */
static int undo(const struct options *opt, struct lock *lock)
{
	struct why why;

	if (!opt->as_flock && tie_release(lock->fd, &why) < 0)
		die(exit_status_of(why.trouble), "%s: %s", opt->label, why.text);
	if (lock_undo(lock, &why) != 0)
		ending_in_trouble(opt, &why);
	return EXIT_SUCCESS;
}

/* The kernel has one kind of lock for both, and would make one lock of them: what is tied to the
 * descriptor would come free, and nobody be told. */
static void spare_ties(const struct options *opt, const struct lock *lock)
{
	if (lock->name == NULL && (opt->method->can & CAN_RANGE) != 0 && lock->slots == 0 &&
	    tie_among(lock->fd, lock->range.start, lock->range.length))
		die(EXIT_USAGE, "%s: a lock is tied to this descriptor, and one of all bytes would undo that: "
				"lock another descriptor, or say --length", opt->label);
}

/* The end of the process lets go of a kernel lock, too, and before anybody can hear of that end:
 * where nothing follows it, that saves a call. */
static bool ends_with_us(const struct options *opt)
{
	return !opt->remove && (opt->method->can & (LEAVES_RECORD | ON_SERVER)) == 0;
}

/* The command gets no descriptor that keeps the lock when semlock is killed. */
static bool dies_with_us(const struct options *opt)
{
	return (opt->close_fd || (opt->method->can & OWNED_BY_PROCESS) != 0) && opt->command != NULL &&
	       opt->locks[0].name != NULL && !opt->become && !opt->unlock;
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
			if (!lockfile_remove(&locks[i]))
				complain("%s: not removed: the file is not empty", obtain_label(opt, &locks[i]));
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
	if (dies_with_us(&opt))
		relay_start();
	job_make(&job, &opt);
	if (opt.unlock && opt.locks[0].name == NULL)
		return undo(&opt, job.locks);
	spare_ties(&opt, job.locks);
	job_make_stand(&job);
	if (!opt.unlock)
		status = obtain(&opt, job.locks, &under_ancestor);
	if (status != OBTAINED) {
		command_cancel(&job.command);
		return status;
	}
	hold_taken();
	if (opt.command == NULL && !opt.stands)
		return EXIT_SUCCESS; /* the caller's descriptor stays locked */
	if (opt.tether >= 0)
		tether_detach(&job.tether);
	if (under_ancestor) {
		job.command.nlocks = 0;
		return run(&job);
	}
	return finish(&opt, job.locks, run(&job));
}
