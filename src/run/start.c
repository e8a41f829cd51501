#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/start.h"
#include "sys/crash_points.h"
#include "run/execute.h"
#include "sys/pidfd.h"
#include "sys/signals.h"
#include "run/supervise.h"

/* What we change for ourselves before the fork, and the command gets back. */
struct inheritance {
	sigset_t mask;
	pid_t parent;
	int parent_end; /* a pidfd of it; -1: none */
};

static void note_parent(struct inheritance *given)
{
	given->parent = getpid();
	given->parent_end = pidfd_of(given->parent);
}

/* Everything is blocked from before the fork on, and only ever looked at in one place:
 * so no signal is lost between two looks, and none ends us before the command. */
static void take_signals(struct inheritance *given, sigset_t *all, bool tie)
{
	if (tie)
		note_parent(given);
	sigfillset(all);
	sigprocmask(SIG_BLOCK, all, &given->mask);
}

/* In a PID namespace of its own (unshare --pid), a child sees no parent. */
static bool parent_lives(const struct inheritance *given)
{
	struct pollfd end = {given->parent_end, POLLIN, 0};
	pid_t parent = getppid();

	return parent == given->parent ||
	       (parent == 0 && given->parent_end >= 0 && poll(&end, 1, 0) == 0);
}

/* If semlock has died before the tie was made, nobody holds the lock any more. */
static void tie_to_parent(const struct inheritance *given)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!parent_lives(given))
		_exit(EXIT_FAILURE);
}

/* A command that was to inherit the lock, and does not, must not run. */
static int pass_descriptors(const struct command *command)
{
	for (unsigned i = 0; i < command->nlocks && !command->passed; i++)
		if (command->locks[i] >= 0 &&
		    fcntl(command->locks[i], F_SETFD, command->inherit ? 0 : FD_CLOEXEC) != 0)
			return -1;
	return 0;
}

/* Nothing is execed here that would close what is not to be inherited.  The end of the gate's
 * socket says that we run. */
static void placeholder(const struct command *command)
{
	for (unsigned i = 0; i < command->nlocks; i++)
		if (!command->inherit)
			close(command->locks[i]);
	close(command->start_barrier.socket);
	command->placeholder();
}

/* In the child, which may share our memory: system calls alone, until the exec. */
static int exec_in_child(const struct command *command, const struct inheritance *given)
{
	if (command->own_group)
		setpgid(0, 0);
	if (command->tie)
		tie_to_parent(given);
	if (pass_descriptors(command) != 0)
		return errno;
	sigprocmask(SIG_SETMASK, &given->mask, NULL);
	if (command->placeholder != NULL)
		placeholder(command);
	return execute(command->argv);
}

/* The parent stands still until the child has execed or exited, in the same memory: an
 * exec that failed is known without a pipe.  Where vfork(2) is only a fork(2), as under qemu-user
 * and valgrind, the parent goes on at once, in memory of its own: there the errno comes with a signal. */
static pid_t start(struct command *command, const struct inheritance *given, int *failure)
{
	volatile bool shared = false;
	volatile int errnum = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		shared = true;
		errnum = exec_in_child(command, given);
		sigqueue(getppid(), SIGCHLD, (union sigval){.sival_int = errnum});
		_exit(EXIT_FAILURE);
	}
	*failure = errnum;
	command->apart = !shared;
	return pid;
}

pid_t command_prepare(struct command *command, const sigset_t *unblock, struct error *error)
{
	struct inheritance given = {0};
	pid_t pid;

	if (command->tie)
		note_parent(&given);
	pid = start_barrier_start(&command->start_barrier, &given.mask);
	if (pid == 0 && unblock != NULL)
		signals_take_out(&given.mask, unblock);
	if (pid == 0)
		start_barrier_fail(&command->start_barrier, exec_in_child(command, &given));
	if (pid < 0)
		error_set(error, ERROR_SYSTEM, "cannot start a process");
	return pid;
}

void command_cancel(struct command *command)
{
	start_barrier_cancel(&command->start_barrier);
}

/* Let it run at last. */
static pid_t start_prepared(struct command *command, int *failure)
{
	*failure = start_barrier_open(&command->start_barrier);
	return command->start_barrier.pid;
}

int command_supervise(struct command *command, struct result *result, struct error *error)
{
	struct inheritance given;
	sigset_t all;
	pid_t pid;
	int failure;

	take_signals(&given, &all, command->tie);
	pid = command->start_barrier.pid > 0 ? start_prepared(command, &failure)
				    : start(command, &given, &failure);
	if (pid < 0)
		return error_set(error, ERROR_SYSTEM, "cannot start a process");
	CRASH_POINT("command.started");
	if (failure != 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		*result = failure < 0
			      ? (struct result){.how = ENDED_SIGNAL, .code = SIGKILL}
			      : (struct result){.how = ENDED_NOT_RUN, .code = failure};
		return 0;
	}
	*result = supervise(command, pid, &all);
	CRASH_POINT("command.ended");
	return 0;
}

void command_become(const struct command *command)
{
	if (pass_descriptors(command) == 0)
		errno = execute(command->argv);
}
