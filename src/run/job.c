#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "run/environment.h"
#include "report/exitcode.h"
#include "run/hold.h"
#include "run/job.h"
#include "sys/memory.h"
#include "run/progress.h"
#include "report/error.h"

static struct lock *make_locks(const struct request *request, struct child *child)
{
	struct lock *locks = memory_lasting(request->nlocks * sizeof *locks);

	if (locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	for (unsigned i = 0; i < request->nlocks; i++) {
		locks[i] = (struct lock){
		    .method = request->method,
		    .name = request->locks[i].name,
		    .mode = request->locks[i].mode,
		    .slots = request->slots,
		    .range = request->range,
		    .create_mode = request->create_mode,
		    .exact_mode = request->exact_mode,
		    .stale = request->stale,
		    .ttl = request->ttl,
		    .note = request->command == NULL ? NULL : request->command[0],
		    .init = request->init,
		    .child = child,
		    .to_be_removed = request->remove,
		    .may_be_deleted = request->as_flock,
		    .fd = request->locks[i].fd,
		    .slot = -1,
		};
		if (request->method->access != NULL)
			locks[i].access = request->method->access(&locks[i]);
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

static struct command make_command(const struct request *request)
{
	bool ours_alone = request->close_fd || (request->method->can & OWNED_BY_PROCESS) != 0;
	struct command command = {
	    .argv = request->command,
	    .locks = memory_lasting(request->nlocks * sizeof *command.locks),
	    .nlocks = request->nlocks,
	    .inherit = request->become || !ours_alone,
	    .passed = request->locks[0].name != NULL &&
		      (request->method->can & (LEAVES_RECORD | ON_SERVER)) == 0,
	    .tie = ours_alone,
	    .limit = {request->run_timeout, request->signal == 0 ? SIGTERM : request->signal, request->kill_after},
	    .own_group = request->run_timeout > 0 && !at_terminal(),
	};

	if (command.locks == NULL)
		die(EXIT_SYSTEM, "no memory");
	return command;
}

/* The one that was named first: several locks are taken in an order of their own. */
static const struct lock *first_of(const struct request *request, const struct lock *locks)
{
	const struct lock *lock = locks;

	while (lock->name != request->locks[0].name)
		lock++;
	return lock;
}

int job_give_locks(struct job *job, struct error *error)
{
	const struct request *request = job->request;

	for (unsigned i = 0; i < request->nlocks; i++)
		job->command.locks[i] = job->locks[i].fd;
	if (request->unlock)
		return 0;
	return environment_set(first_of(request, job->locks), request->label, job->locks, request->nlocks, error);
}

/* A record is to name the command: up to its gate. */
static pid_t start_command(struct child *child, struct error *error)
{
	struct job *job = child->context;

	if (job_give_locks(job, error) != 0)
		return -1;
	return command_prepare(&job->command, progress_blocks(), error);
}

void job_make(struct job *job, const struct request *request)
{
	*job = (struct job){.request = request, .command = make_command(request)};
	job->child = (struct child){
	    .start = start_command,
	    .context = job,
	    .inherits = job->command.inherit,
	};
	job->locks = make_locks(request, &job->child);
}

void job_make_stand(struct job *job)
{
	const struct request *request = job->request;

	if (!request->hold)
		return;
	if (!hold_for(request->owner))
		die(EXIT_USAGE, request->owner == 0 ? "--hold: the process that started it has ended"
						: "--hold=%ld: there is no such process", (long)request->owner);
	job->command.placeholder = hold_until_end;
}
