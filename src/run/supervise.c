#include <config.h>

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/deadline.h"
#include "run/relay.h"
#include "run/supervise.h"

/* Our view of the command while it runs. */
struct supervised {
	pid_t pid;
	bool stopped;
	bool keyboard; /* the terminal has asked everybody to stop */
	bool resumed;  /* we were stopped like it, and go on */
	const struct command *command;
	struct deadline next; /* when the limit has something to do */
	bool server_text;            /* it has been asked to end */
	sigset_t got;         /* the signals that came to semlock, from a key or by kill(2) */
};

/* Did a key send it, to the whole foreground group, of which the command is one? */
static bool command_has_it(const struct supervised *supervised, int signo, const siginfo_t *info)
{
	switch (signo) {
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGWINCH:
		return info->si_code > 0 && getpgid(supervised->pid) == getpgrp();
	case SIGHUP:
		/* At a hangup it goes to the leader of the session, too, whichever group is in the
		 * foreground: better heard twice than not at all. */
		return info->si_code > 0 && getpgid(supervised->pid) == getpgrp() && getsid(0) != getpid();
	}
	return false;
}

static void stop_like_it(struct supervised *supervised, int signo)
{
	static const struct timespec now = {0, 0};
	sigset_t just_it, cont;

	/* A stop from outside that was meant for the command alone leaves us running: whoever
	 * continues it would not know to continue us. */
	if (signo == SIGSTOP && supervised->keyboard)
		signo = SIGTSTP;
	supervised->keyboard = false;
	if (signo == SIGSTOP)
		return;
	sigemptyset(&just_it);
	sigaddset(&just_it, signo);
	raise(signo); /* the kernel drops it where there is no shell to continue us */
	sigprocmask(SIG_UNBLOCK, &just_it, NULL);
	sigprocmask(SIG_BLOCK, &just_it, NULL);
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	supervised->resumed = sigtimedwait(&cont, NULL, &now) == SIGCONT;
}

/* What resumed us was sent to the whole group by a shell, and then the command runs already:
 * one more SIGCONT, a moment later, could undo the user's next Ctrl-Z.  Or it was sent to us
 * alone. */
static void go_on_like_us(struct supervised *supervised)
{
	if (supervised->resumed && supervised->stopped)
		kill(supervised->pid, SIGCONT);
	supervised->resumed = false;
}

/* Collect what has happened to the command.  Other children are orphans that came to us
 * because we are process 1 of a container, or were there before semlock was execed. */
static bool reap(struct supervised *supervised, struct result *result)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (pid != supervised->pid)
			continue;
		if (WIFCONTINUED(status)) {
			supervised->stopped = false;
		} else if (WIFSTOPPED(status)) {
			supervised->stopped = true;
			stop_like_it(supervised, WSTOPSIG(status));
		} else {
			result->how = WIFSIGNALED(status) ? ENDED_SIGNAL : ENDED_EXIT;
			result->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
			return true;
		}
	}
	go_on_like_us(supervised);
	return false;
}

/* To the command, and where it has a group, to all in it. */
static void end_it(const struct supervised *supervised, int signo)
{
	kill(supervised->command->own_group ? -supervised->pid : supervised->pid, signo);
}

static bool asks_to_end(int signo)
{
	return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

/* The time is up: the limit's signal, and a stopped command has to run to obey it; after
 * that, SIGKILL.  It has not been waited for, so its number is still its own. */
static void enforce(struct supervised *supervised, struct result *result)
{
	const struct limit *limit = &supervised->command->limit;
	int signo = supervised->server_text ? SIGKILL : limit->signal;

	result->timed_out = result->timed_out || !supervised->server_text;
	result->killed = signo == SIGKILL;
	end_it(supervised, signo);
	if (signo != SIGKILL && signo != SIGCONT)
		end_it(supervised, SIGCONT);
	supervised->next = supervised->server_text || limit->kill_after == 0 ? deadline_never()
							    : deadline_after(limit->kill_after);
	supervised->server_text = true;
}

/* Asked to end by a signal to us, it has no longer than after the limit's own. */
static void start_countdown(struct supervised *supervised)
{
	if (supervised->server_text || supervised->command->limit.kill_after == 0)
		return;
	supervised->server_text = true;
	supervised->next = deadline_after(supervised->command->limit.kill_after);
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
static int next_signal(const struct supervised *supervised, const sigset_t *all, siginfo_t *info)
{
	int64_t left = deadline_left(&supervised->next);
	struct timespec pause = {(time_t)(left / SECOND), (long)(left % SECOND)};
	int signo = supervised->next.never ? sigwaitinfo(all, info) : sigtimedwait(all, info, &pause);

	return signo < 0 && errno != EINTR && errno != EAGAIN ? poll_signal(info) : signo;
}

static void pass_on(struct supervised *supervised, int signo, const siginfo_t *info)
{
	if (command_has_it(supervised, signo, info)) {
		supervised->keyboard = supervised->keyboard || signo == SIGTSTP;
		return;
	}
	if (asks_to_end(signo)) {
		end_it(supervised, signo);
		start_countdown(supervised);
	} else {
		kill(supervised->pid, signo);
	}
}

/* A shell continues a job by one signal to the whole group: then the command runs already. */
static bool was_continued(struct supervised *supervised, struct result *result, bool *over)
{
	bool before = supervised->stopped;

	*over = reap(supervised, result);
	return before && !supervised->stopped;
}

/* The command may have died of a signal whose copy for semlock is still pending. */
static bool got_it_too(const struct supervised *supervised, const struct result *result)
{
	sigset_t pending;

	if (result->how != ENDED_SIGNAL || (result->timed_out && result->code == supervised->command->limit.signal))
		return false;
	sigpending(&pending);
	return sigismember(&supervised->got, result->code) == 1 || sigismember(&pending, result->code) == 1;
}

struct result supervise(const struct command *command, pid_t pid, const sigset_t *all)
{
	struct supervised running = {
	    .pid = pid,
	    .command = command,
	    .next = command->limit.time > 0 ? deadline_after(command->limit.time) : deadline_never(),
	};
	struct supervised *supervised = &running;
	struct result result = {.how = ENDED_EXIT};
	siginfo_t info;
	bool over = false;
	int signo, failure = 0;

	sigemptyset(&supervised->got);
	while (!over) {
		if (relay_killed()) {
			relay_end_all(pid);
			return (struct result){.how = ENDED_SIGNAL, .code = SIGKILL};
		}
		signo = next_signal(supervised, all, &info);
		if (signo > 0)
			sigaddset(&supervised->got, signo);
		if (signo == SIGCHLD && command->apart && info.si_code == SI_QUEUE && info.si_pid == pid)
			failure = info.si_value.sival_int;
		if (signo == SIGCHLD)
			over = reap(supervised, &result);
		else if (signo == SIGCONT && was_continued(supervised, &result, &over))
			continue;
		else if (signo > 0 && !over)
			pass_on(supervised, signo, &info);
		else if (signo < 0 && !(over = reap(supervised, &result)) && deadline_left(&supervised->next) == 0)
			enforce(supervised, &result);
	}
	if (failure != 0)
		result = (struct result){.how = ENDED_NOT_RUN, .code = failure};
	result.ours = got_it_too(supervised, &result);
	return result;
}
