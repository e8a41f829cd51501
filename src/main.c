/* semlock - run a command while holding a lock.  The whole story, in order. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "environment.h"
#include "events.h"
#include "exitcode.h"
#include "lock.h"
#include "lockfile.h"
#include "messages.h"
#include "obtain.h"
#include "options.h"
#include "report.h"
#include "several.h"
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

static struct lock *make_locks(const struct options *opt)
{
	struct lock *locks = calloc(opt->nlocks, sizeof *locks);

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
		    .to_be_removed = opt->remove,
		    .may_be_deleted = opt->as_flock,
		    .fd = opt->locks[i].fd,
		    .slot = -1,
		};
		locks[i].access = opt->method->access(&locks[i]);
	}
	return locks;
}

static int undo(const struct options *opt, struct lock *lock)
{
	struct why why;

	if (lock_undo(lock, &why) != 0)
		die(exit_status_of(why.trouble), "%s: %s", opt->label, why.text);
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

static int run(const struct options *opt, struct lock *locks, unsigned held)
{
	bool ours_alone = opt->close_fd || (opt->method->can & OWNED_BY_PROCESS) != 0;
	int *fds = calloc(held + 1, sizeof *fds);
	struct command command = {
	    .argv = opt->command,
	    .locks = fds,
	    .nlocks = held,
	    .inherit = opt->become || !ours_alone,
	    .tie = ours_alone,
	    .limit = {opt->run_timeout, opt->signal == 0 ? SIGTERM : opt->signal, opt->kill_after},
	    .own_group = opt->run_timeout > 0 && !at_terminal(),
	};
	struct ending ending;
	struct why why;

	if (fds == NULL)
		die(EXIT_SYSTEM, "no memory");
	for (unsigned i = 0; i < held; i++)
		fds[i] = locks[i].fd;
	if (held > 0 && !opt->unlock &&
	    environment_set(first_of(opt, locks), opt->label, locks, held, &why) != 0)
		die(EXIT_SYSTEM, "%s: %s", opt->label, why.text);
	messages_running(opt);
	if (opt->become) {
		command_become(&command);
		ending = (struct ending){.how = ENDED_NOT_RUN, .code = errno};
	} else if (command_watch(&command, &ending, &why) != 0) {
		die(EXIT_SYSTEM, "%s: %s", opt->label, why.text);
	}
	free(fds);
	return exit_status(opt, &ending);
}

static int finish(const struct options *opt, struct lock *locks, int status)
{
	several_forget(locks, opt->nlocks);
	if (opt->remove)
		for (unsigned i = 0; i < opt->nlocks; i++)
			lockfile_remove(&locks[i]);
	return status;
}

int main(int argc, char **argv)
{
	static struct options opt; /* static: both last as long as the process, on all ways out */
	static struct lock *locks;
	bool under_ancestor = false;
	int status = OBTAINED;

	options_parse(&opt, argc, argv);
	if (opt.who)
		return who(&opt);
	locks = make_locks(&opt);
	if (opt.unlock && opt.locks[0].name == NULL)
		return undo(&opt, locks);
	if (!opt.unlock)
		status = obtain(&opt, locks, &under_ancestor);
	if (status != OBTAINED)
		return status;
	if (opt.command == NULL)
		return EXIT_SUCCESS; /* the caller's descriptor stays locked */
	if (under_ancestor)
		return run(&opt, locks, 0);
	return finish(&opt, locks, run(&opt, locks, opt.nlocks));
}
