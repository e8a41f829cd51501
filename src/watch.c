#include <config.h>

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "relay.h"
#include "watch.h"

/* Our view of the command while it runs. */
struct child {
	pid_t pid;
	bool stopped;
	bool keyboard; /* the terminal has asked everybody to stop */
	bool resumed;  /* we were stopped like it, and go on */
	const struct command *command;
	struct deadline next; /* when the limit has something to do */
	bool told;            /* it has been asked to end */
	sigset_t got;         /* the signals that came to semlock, from a key or by kill(2) */
};

/* Did a key send it, to the whole foreground group, of which the command is one? */
static bool command_has_it(const struct child *child, int signo, const siginfo_t *info)
{
	switch (signo) {
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGWINCH:
		return info->si_code > 0 && getpgid(child->pid) == getpgrp();
	case SIGHUP:
		/* At a hangup it goes to the leader of the session, too, whichever group is in the
		 * foreground: better heard twice than not at all. */
		return info->si_code > 0 && getpgid(child->pid) == getpgrp() && getsid(0) != getpid();
	}
	return false;
}

static void stop_like_it(struct child *child, int signo)
{
	static const struct timespec now = {0, 0};
	sigset_t just_it, cont;

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
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	child->resumed = sigtimedwait(&cont, NULL, &now) == SIGCONT;
}

/* What resumed us was sent to the whole group by a shell, and then the command runs already:
 * one more SIGCONT, a moment later, could undo the user's next Ctrl-Z.  Or it was sent to us
 * alone. */
static void go_on_like_us(struct child *child)
{
	if (child->resumed && child->stopped)
		kill(child->pid, SIGCONT);
	child->resumed = false;
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
	go_on_like_us(child);
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

/* sigwaitinfo(2) fails although it is no signal's fault (a sandbox denies it, say): look by the
 * clock.  To ignore a pending signal for a moment takes it from the queue; where it came from is lost
 * with it.  -1: there is none, and the command may have ended. */
static int poll_signal(siginfo_t *info)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t pending;

	poll(NULL, 0, 10);
	info->si_code = SI_USER;
	sigpending(&pending);
	for (int signo = 1; signo < NSIG; signo++)
		if (signo != SIGCHLD && sigismember(&pending, signo) == 1) {
			sigaction(signo, &ignore, &before);
			sigaction(signo, &before, NULL);
			return signo;
		}
	return -1;
}

/* The next signal to us; -1 when the limit's time has come, or at random. */
static int next_signal(const struct child *child, const sigset_t *all, siginfo_t *info)
{
	int64_t left = deadline_left(&child->next);
	struct timespec pause = {(time_t)(left / SECOND), (long)(left % SECOND)};
	int signo = child->next.never ? sigwaitinfo(all, info) : sigtimedwait(all, info, &pause);

	return signo < 0 && errno != EINTR && errno != EAGAIN ? poll_signal(info) : signo;
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

/* The command may have died of a signal whose copy for semlock is still pending. */
static bool got_it_too(const struct child *child, const struct ending *ending)
{
	sigset_t pending;

	if (ending->how != ENDED_SIGNAL || (ending->timed_out && ending->code == child->command->limit.signal))
		return false;
	sigpending(&pending);
	return sigismember(&child->got, ending->code) == 1 || sigismember(&pending, ending->code) == 1;
}

struct ending watch(const struct command *command, pid_t pid, const sigset_t *all)
{
	struct child running = {
	    .pid = pid,
	    .command = command,
	    .next = command->limit.time > 0 ? deadline_after(command->limit.time) : deadline_never(),
	};
	struct child *child = &running;
	struct ending ending = {.how = ENDED_EXIT};
	siginfo_t info;
	bool over = false;
	int signo, failure = 0;

	sigemptyset(&child->got);
	while (!over) {
		if (relay_killed()) {
			relay_end_all(pid);
			return (struct ending){.how = ENDED_SIGNAL, .code = SIGKILL};
		}
		signo = next_signal(child, all, &info);
		if (signo > 0)
			sigaddset(&child->got, signo);
		if (signo == SIGCHLD && command->apart && info.si_code == SI_QUEUE && info.si_pid == pid)
			failure = info.si_value.sival_int;
		if (signo == SIGCHLD)
			over = reap(child, &ending);
		else if (signo == SIGCONT && was_continued(child, &ending, &over))
			continue;
		else if (signo > 0 && !over)
			pass_on(child, signo, &info);
		else if (signo < 0 && !(over = reap(child, &ending)) && deadline_left(&child->next) == 0)
			enforce(child, &ending);
	}
	if (failure != 0)
		ending = (struct ending){.how = ENDED_NOT_RUN, .code = failure};
	ending.ours = got_it_too(child, &ending);
	return ending;
}
