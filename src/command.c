#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#if HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif

#include "command.h"
#include "crash.h"
#include "deadline.h"
#include "hold.h"

/* What we change for ourselves before the fork, and the command gets back. */
struct inheritance {
	sigset_t mask;
	bool ignores_children; /* SIGCHLD was ignored when we were started */
	pid_t parent;
};

/* Our view of the command while it runs. */
struct child {
	pid_t pid;
	bool stopped;
	bool keyboard; /* the terminal has asked everybody to stop */
	const struct command *command;
	struct deadline next; /* when the limit has something to do */
	bool told;            /* it has been asked to end */
};

static void ignore_nothing(int signo)
{
	(void)signo;
}

/* Everything is blocked from before the fork on, and only ever looked at in one place:
 * so no signal is lost between two looks, and none ends us before the command.  SIGCHLD
 * needs a handler, or a system may throw it away, or the exit status with it. */
static void take_signals(struct inheritance *given, sigset_t *all)
{
	struct sigaction child = {.sa_handler = ignore_nothing}, before;

	sigaction(SIGCHLD, &child, &before);
	given->ignores_children = before.sa_handler == SIG_IGN;
	given->parent = getpid();
	sigfillset(all);
	sigprocmask(SIG_BLOCK, all, &given->mask);
}

/* If semlock has died before the tie was made, nobody holds the lock any more. */
static void tie_to(pid_t parent)
{
#if HAVE_SYS_PRCTL_H
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
#else
	(void)parent;
#endif
}

static void pass_descriptors(const struct command *command)
{
	for (unsigned i = 0; i < command->nlocks; i++)
		fcntl(command->locks[i], F_SETFD, command->inherit ? 0 : FD_CLOEXEC);
}

/* Nothing is execed here that would close what is not to be inherited.  The end of the gate's
 * socket says that we run. */
static noreturn void hold(const struct command *command)
{
	for (unsigned i = 0; i < command->nlocks; i++)
		if (!command->inherit)
			close(command->locks[i]);
	close(command->gate.socket);
	hold_until_end();
}

/* In the child, which may share our memory: system calls alone, until the exec. */
static int exec_in_child(const struct command *command, const struct inheritance *given)
{
	if (given->ignores_children)
		signal(SIGCHLD, SIG_IGN);
	if (command->own_group)
		setpgid(0, 0);
	if (command->tie)
		tie_to(given->parent);
	pass_descriptors(command);
	sigprocmask(SIG_SETMASK, &given->mask, NULL);
	if (command->hold)
		hold(command);
	execvp(command->argv[0], command->argv);
	return errno;
}

#if HAVE_VFORK
/* The parent stands still until the child has execed or exited, in the same memory: an
 * exec that failed is known without a pipe. */
static pid_t start(const struct command *command, const struct inheritance *given, int *failure)
{
	volatile int errnum = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		errnum = exec_in_child(command, given);
		_exit(EXIT_FAILURE);
	}
	*failure = errnum;
	return pid;
}
#else
static pid_t start(const struct command *command, const struct inheritance *given, int *failure)
{
	int report[2], errnum = 0;
	pid_t pid;

	*failure = 0;
	if (pipe(report) != 0)
		return -1;
	fcntl(report[1], F_SETFD, FD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		close(report[0]);
		errnum = exec_in_child(command, given);
		if (write(report[1], &errnum, sizeof errnum) < 0)
			_exit(EXIT_SUCCESS);
		_exit(EXIT_FAILURE);
	}
	close(report[1]);
	if (pid > 0 && read(report[0], &errnum, sizeof errnum) == (ssize_t)sizeof errnum)
		*failure = errnum;
	close(report[0]);
	return pid;
}
#endif

pid_t command_prepare(struct command *command, struct why *why)
{
	struct inheritance given = {.parent = getpid()};
	pid_t pid = gate_start(&command->gate, &given.mask);

	if (pid == 0)
		gate_fail(&command->gate, exec_in_child(command, &given));
	if (pid < 0)
		why_set(why, TROUBLE_SYSTEM, "cannot start a process");
	return pid;
}

void command_cancel(struct command *command)
{
	gate_cancel(&command->gate);
}

/* Let it run at last. */
static pid_t start_prepared(struct command *command, int *failure)
{
	*failure = gate_open(&command->gate);
	return command->gate.pid;
}

/* Did a key send it, to the whole foreground group, of which the command is one? */
static bool command_has_it(const struct child *child, int signo, const siginfo_t *info)
{
	switch (signo) {
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGHUP:
	case SIGWINCH:
		return info->si_code > 0 && getpgid(child->pid) == getpgrp();
	}
	return false;
}

static void stop_like_it(struct child *child, int signo)
{
	sigset_t just_it;

	/* A stop from outside that was meant for the command alone leaves us running: whoever
	 * continues it would not know to continue us. */
	if (signo == SIGSTOP && child->keyboard)
		signo = SIGTSTP;
	child->keyboard = false;
	if (signo == SIGSTOP)
		return;
	sigemptyset(&just_it);
	sigaddset(&just_it, signo);
	raise(signo); /* the kernel drops it where there is no shell to continue us */
	sigprocmask(SIG_UNBLOCK, &just_it, NULL);
	sigprocmask(SIG_BLOCK, &just_it, NULL);
}

/* Collect what has happened to the command.  Other children are orphans that came to us
 * because we are process 1 of a container, or were there before semlock was execed. */
static bool reap(struct child *child, struct ending *ending)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (pid != child->pid)
			continue;
		if (WIFCONTINUED(status)) {
			child->stopped = false;
		} else if (WIFSTOPPED(status)) {
			child->stopped = true;
			stop_like_it(child, WSTOPSIG(status));
		} else {
			ending->how = WIFSIGNALED(status) ? ENDED_SIGNAL : ENDED_EXIT;
			ending->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
			return true;
		}
	}
	return false;
}

/* To the command, and where it has a group, to all in it. */
static void end_it(const struct child *child, int signo)
{
	kill(child->command->own_group ? -child->pid : child->pid, signo);
}

static bool asks_to_end(int signo)
{
	return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

/* The time is up: the limit's signal, and a stopped command has to run to obey it; after
 * that, SIGKILL.  It has not been waited for, so its number is still its own. */
static void enforce(struct child *child, struct ending *ending)
{
	const struct limit *limit = &child->command->limit;
	int signo = child->told ? SIGKILL : limit->signal;

	ending->timed_out = ending->timed_out || !child->told;
	ending->killed = signo == SIGKILL;
	end_it(child, signo);
	if (signo != SIGKILL && signo != SIGCONT)
		end_it(child, SIGCONT);
	child->next = child->told || limit->kill_after == 0 ? deadline_never()
							    : deadline_after(limit->kill_after);
	child->told = true;
}

/* Asked to end by a signal to us, it has no longer than after the limit's own. */
static void start_countdown(struct child *child)
{
	if (child->told || child->command->limit.kill_after == 0)
		return;
	child->told = true;
	child->next = deadline_after(child->command->limit.kill_after);
}

/* The next signal to us; -1 when the limit's time has come, or at random. */
static int next_signal(const struct child *child, const sigset_t *all, siginfo_t *info)
{
	int64_t left = deadline_left(&child->next);
	struct timespec pause = {(time_t)(left / SECOND), (long)(left % SECOND)};

	if (child->next.never)
		return sigwaitinfo(all, info);
	return sigtimedwait(all, info, &pause);
}

static void pass_on(struct child *child, int signo, const siginfo_t *info)
{
	if (command_has_it(child, signo, info)) {
		child->keyboard = child->keyboard || signo == SIGTSTP;
		return;
	}
	if (asks_to_end(signo)) {
		end_it(child, signo);
		start_countdown(child);
	} else {
		kill(child->pid, signo);
	}
}

/* A shell continues a job by one signal to the whole group: then the command runs already. */
static bool was_continued(struct child *child, struct ending *ending, bool *over)
{
	bool before = child->stopped;

	*over = reap(child, ending);
	return before && !child->stopped;
}

static struct ending watch(struct child *child, const sigset_t *all)
{
	struct ending ending = {.how = ENDED_EXIT};
	siginfo_t info;
	bool over = false;
	int signo;

	while (!over) {
		signo = next_signal(child, all, &info);
		if (signo == SIGCHLD)
			over = reap(child, &ending);
		else if (signo == SIGCONT && was_continued(child, &ending, &over))
			continue;
		else if (signo > 0 && !over)
			pass_on(child, signo, &info);
		else if (signo < 0 && deadline_left(&child->next) == 0 && !(over = reap(child, &ending)))
			enforce(child, &ending);
	}
	return ending;
}

int command_watch(struct command *command, struct ending *ending, struct why *why)
{
	struct inheritance given;
	struct child child = {.command = command, .next = deadline_never()};
	sigset_t all;
	int failure;

	take_signals(&given, &all);
	child.pid = command->gate.pid > 0 ? start_prepared(command, &failure)
					  : start(command, &given, &failure);
	if (child.pid < 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot start a process");
	CRASH_POINT("command.started");
	if (failure != 0) {
		while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
			;
		*ending = failure < 0
			      ? (struct ending){.how = ENDED_SIGNAL, .code = SIGKILL}
			      : (struct ending){.how = ENDED_NOT_RUN, .code = failure};
		return 0;
	}
	if (command->limit.time > 0)
		child.next = deadline_after(command->limit.time);
	*ending = watch(&child, &all);
	CRASH_POINT("command.ended");
	return 0;
}

void command_become(const struct command *command)
{
	pass_descriptors(command);
	execvp(command->argv[0], command->argv);
}
