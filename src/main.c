/* semlock - run a command while holding a lock.  The whole story, in order. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "environment.h"
#include "events.h"
#include "exitcode.h"
#include "hold.h"
#include "keeper.h"
#include "lease.h"
#include "lock.h"
#include "lockfile.h"
#include "memory.h"
#include "messages.h"
#include "obtain.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "several.h"
#include "tether.h"
#include "who.h"

/* The command never ran: why, and the status that says so. */
static int not_run(const struct options *opt, int errnum)
{
	event("not-run %s", event_errno(errnum));
	if (opt->as_flock) {
		complain("failed to execute %s: %s", opt->command[0], strerror(errnum));
		return errnum == ENOMEM ? EXIT_SYSTEM : EXIT_UNAVAILABLE;
	}
	complain("%s: cannot run it: %s", opt->command[0], strerror(errnum));
	return errnum == ENOENT ? EXIT_NOTFOUND : EXIT_NOTRUN;
}

static int exit_status(const struct options *opt, const struct ending *ending)
{
	if (ending->timed_out)
		event("run-timeout");
	if (ending->how != ENDED_NOT_RUN)
		event(ending->how == ENDED_SIGNAL ? "signal %d" : "exit %d", ending->code);
	if (ending->timed_out && !(ending->killed && ending->how == ENDED_SIGNAL))
		return EXIT_RUNTIMEOUT;
	switch (ending->how) {
	case ENDED_EXIT:
		return ending->code;
	case ENDED_SIGNAL:
		return 128 + ending->code;
	case ENDED_NOT_RUN:
		break;
	}
	return not_run(opt, ending->code);
}

static const char *label_of(const struct options *opt, const struct lock *lock)
{
	return lock->name == NULL ? opt->label : lock->name;
}

static struct lock *make_locks(const struct options *opt, struct bearer *bearer)
{
	struct lock *locks = memory_lasting(opt->nlocks * sizeof *locks);

	if (locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	for (unsigned i = 0; i < opt->nlocks; i++) {
		locks[i] = (struct lock){
		    .method = opt->method,
		    .name = opt->locks[i].name,
		    .mode = opt->locks[i].mode,
		    .slots = opt->slots,
		    .range = opt->range,
		    .create_mode = opt->create_mode,
		    .exact_mode = opt->exact_mode,
		    .stale = opt->stale,
		    .ttl = opt->ttl,
		    .interval = opt->interval,
		    .note = opt->command == NULL ? NULL : opt->command[0],
		    .init = opt->init,
		    .bearer = bearer,
		    .to_be_removed = opt->remove,
		    .may_be_deleted = opt->as_flock,
		    .fd = opt->locks[i].fd,
		    .slot = -1,
		};
		if (opt->method->access != NULL)
			locks[i].access = opt->method->access(&locks[i]);
	}
	return locks;
}

/* All that is to be done, and with what. */
struct job {
	const struct options *opt;
	struct lock *locks;
	struct command *command;
	struct bearer bearer;
	struct tether tether; /* with --tether */
};

/* semlock itself cannot go on. */
static noreturn void give_up(const struct options *opt, int status, const struct why *why)
{
	event("failed %d", status);
	die(status, "%s: %s", opt->label, why->text);
}

static int undo(const struct options *opt, struct lock *lock)
{
	struct why why;

	if (!opt->as_flock && tie_release(lock->fd, &why) < 0)
		die(exit_status_of(why.trouble), "%s: %s", opt->label, why.text);
	if (lock_undo(lock, &why) != 0)
		give_up(opt, exit_status_of(why.trouble), &why);
	return EXIT_SUCCESS;
}

/* The one that was named first: several locks are taken in an order of their own. */
static const struct lock *first_of(const struct options *opt, const struct lock *locks)
{
	const struct lock *lock = locks;

	while (lock->name != opt->locks[0].name)
		lock++;
	return lock;
}

/* In the foreground of a terminal, the command has to stay in the group that the keys reach. */
static bool at_terminal(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	bool foreground = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();

	if (terminal >= 0)
		close(terminal);
	return foreground;
}

static struct command make_command(const struct options *opt)
{
	bool ours_alone = opt->close_fd || (opt->method->can & OWNED_BY_PROCESS) != 0;
	struct command command = {
	    .argv = opt->command,
	    .locks = memory_lasting(opt->nlocks * sizeof *command.locks),
	    .nlocks = opt->nlocks,
	    .inherit = opt->become || !ours_alone,
	    .tie = ours_alone,
	    .limit = {opt->run_timeout, opt->signal == 0 ? SIGTERM : opt->signal, opt->kill_after},
	    .own_group = opt->run_timeout > 0 && !at_terminal(),
	};

	if (command.locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	return command;
}

/* What the command is told of its locks, and gets of them. */
static int give_locks(const struct job *job, struct why *why)
{
	const struct options *opt = job->opt;

	for (unsigned i = 0; i < opt->nlocks; i++)
		job->command->locks[i] = job->locks[i].fd;
	if (opt->unlock)
		return 0;
	return environment_set(first_of(opt, job->locks), opt->label, job->locks, opt->nlocks, why);
}

/* A record is to name the command: up to its gate. */
static pid_t start_command(struct bearer *bearer, struct why *why)
{
	const struct job *job = bearer->context;

	if (give_locks(job, why) != 0)
		return -1;
	return command_prepare(job->command, progress_blocks(), why);
}

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
		give_up(opt, EXIT_SYSTEM, &why);
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
		job->bearer.pid = start_command(&job->bearer, why);
	return job->bearer.pid < 0 ? -1 : 0;
}

static int run(struct job *job)
{
	const struct options *opt = job->opt;
	struct ending ending;
	struct watch watch;
	struct why why;

	if (job->command->nlocks > 0 && job->bearer.pid == 0 && give_locks(job, &why) != 0)
		give_up(opt, EXIT_SYSTEM, &why);
	if (start_holding(job, &why) != 0)
		give_up(opt, EXIT_SYSTEM, &why);
	if (!opt->stands)
		messages_running(opt);
	if (opt->become) {
		command_become(job->command);
		return exit_status(opt, &(struct ending){.how = ENDED_NOT_RUN, .code = errno});
	}
	watch_start(&watch, job);
	if (command_watch(job->command, &ending, &why) != 0)
		give_up(opt, EXIT_SYSTEM, &why);
	watch_stop(&watch);
	if (opt->tether >= 0 && ending.how == ENDED_SIGNAL)
		tether_orphaned(&job->tether);
	return exit_status(opt, &ending);
}

/* With --hold and --tether something of ours stands where the command would run. */
static void make_stand(struct job *job)
{
	const struct options *opt = job->opt;
	struct tether *tether = &job->tether;
	struct why why;

	if (opt->hold) {
		if (!hold_for(opt->owner))
			die(EXIT_USAGE, opt->owner == 0 ? "--hold: the process that started it has ended"
							: "--hold=%ld: there is no such process", (long)opt->owner);
		job->command->stand = hold_until_end;
	} else if (opt->tether >= 0) {
		*tether = (struct tether){.fd = opt->tether, .on_lost = opt->on_lost, .lock = job->locks};
		if (tether_in_its_own_way(tether, job->locks))
			die(EXIT_USAGE, "%s: that is the file behind descriptor %d; lock that: semlock --fcntl %d",
			    opt->label, opt->tether, opt->tether);
		if (tether_begin(tether, &why) != 0)
			die(exit_status_of(why.trouble), "%s: %s", opt->label, why.text);
		job->command->stand = tether_watch;
		job->command->context = tether;
	}
}

/* Somebody who does not heed the lock has removed or replaced it: another command may have
 * run beside ours, and that is worth more than how ours ended. */
static int status_if_lost(const struct options *opt, const struct lock *locks, int status)
{
	for (unsigned i = 0; i < opt->nlocks; i++)
		if (locks[i].lost) {
			if (!locks[i].lost_said)
				complain("%s: the lock was lost while the command ran",
				    label_of(opt, &locks[i]));
			event("lost");
			status = EXIT_LOST;
		}
	return status;
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
	several_forget(locks, opt->nlocks);
	status = status_if_lost(opt, locks, status);
	for (unsigned i = 0; i < opt->nlocks; i++)
		if (locks[i].stuck)
			complain("%s: %s", label_of(opt, &locks[i]), why_stuck(opt));
	if (opt->remove && (opt->method->can & LEAVES_RECORD) == 0)
		for (unsigned i = 0; i < opt->nlocks; i++)
			lockfile_remove(&locks[i]);
	return status;
}

int main(int argc, char **argv)
{
	static struct options opt; /* static: all of it lasts as long as the process, on all ways out */
	static struct command command;
	static struct job job = {.opt = &opt, .command = &command};
	bool under_ancestor = false;
	int status = OBTAINED;

	options_parse(&opt, argc, argv);
	if (opt.who)
		return who(&opt);
	if (opt.check)
		return check(&opt);
	command = make_command(&opt);
	job.bearer = (struct bearer){
	    .start = start_command,
	    .context = &job,
	    .inherits = command.inherit,
	};
	job.locks = make_locks(&opt, &job.bearer);
	if (opt.unlock && opt.locks[0].name == NULL)
		return undo(&opt, job.locks);
	make_stand(&job);
	if (!opt.unlock)
		status = obtain(&opt, job.locks, &under_ancestor);
	if (status != OBTAINED) {
		command_cancel(&command);
		return status;
	}
	hold_taken();
	if (opt.command == NULL && !opt.stands)
		return EXIT_SUCCESS; /* the caller's descriptor stays locked */
	if (opt.tether >= 0)
		tether_detach(&job.tether);
	if (under_ancestor) {
		command.nlocks = 0;
		return run(&job);
	}
	return finish(&opt, job.locks, run(&job));
}
