#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "environment.h"
#include "exitcode.h"
#include "hold.h"
#include "job.h"
#include "memory.h"
#include "progress.h"
#include "report.h"

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
	    .passed = opt->locks[0].name != NULL &&
		      (opt->method->can & (LEAVES_RECORD | ON_SERVER)) == 0,
	    .tie = ours_alone,
	    .limit = {opt->run_timeout, opt->signal == 0 ? SIGTERM : opt->signal, opt->kill_after},
	    .own_group = opt->run_timeout > 0 && !at_terminal(),
	};

	if (command.locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	return command;
}

/* The one that was named first: several locks are taken in an order of their own. */
static const struct lock *first_of(const struct options *opt, const struct lock *locks)
{
	const struct lock *lock = locks;

	while (lock->name != opt->locks[0].name)
		lock++;
	return lock;
}

int job_give_locks(struct job *job, struct why *why)
{
	const struct options *opt = job->opt;

	for (unsigned i = 0; i < opt->nlocks; i++)
		job->command.locks[i] = job->locks[i].fd;
	if (opt->unlock)
		return 0;
	return environment_set(first_of(opt, job->locks), opt->label, job->locks, opt->nlocks, why);
}

/* A record is to name the command: up to its gate. */
static pid_t start_command(struct bearer *bearer, struct why *why)
{
	struct job *job = bearer->context;

	if (job_give_locks(job, why) != 0)
		return -1;
	return command_prepare(&job->command, progress_blocks(), why);
}

void job_make(struct job *job, const struct options *opt)
{
	*job = (struct job){.opt = opt, .command = make_command(opt)};
	job->bearer = (struct bearer){
	    .start = start_command,
	    .context = job,
	    .inherits = job->command.inherit,
	};
	job->locks = make_locks(opt, &job->bearer);
}

void job_make_stand(struct job *job)
{
	const struct options *opt = job->opt;

	if (!opt->hold)
		return;
	if (!hold_for(opt->owner))
		die(EXIT_USAGE, opt->owner == 0 ? "--hold: the process that started it has ended"
						: "--hold=%ld: there is no such process", (long)opt->owner);
	job->command.stand = hold_until_end;
}
