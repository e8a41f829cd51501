/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/deadline.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "run/supervise.h"

struct sent {
	int signo; /* 0: none yet */
	pid_t sender;
	int64_t moment; /* on clock_now()'s clock */
};

struct supervised {
	struct command *command;
	struct subreaper *subreaper;
	pid_t pid;
	bool stopped;
	bool keyboard;        /* SIGTSTP came from the keyboard, for the whole foreground group */
	bool resumed;         /* semlock was stopped like the command, and was continued */
	struct deadline next; /* of the limit's next signal */
	/* the command has got the limit's signal, or one to end that came to semlock */
	bool asked_to_end;
	/* the signals that semlock has received, from the keyboard or by kill(2) */
	sigset_t got;
	struct sent last; /* the last one that asked to end, and was passed on */
	bool over;        /* the command has ended, with RESULT; ... */
	struct result result;
	int failure; /* ... but for an errno: its exec failed */
};

enum event {
	EVENT_SUBREAPER_KILLED,
	EVENT_PARENT_ENDED, /* --die-with-parent */
	EVENT_EXEC_FAILED,
	EVENT_CHILD,     /* a child may have changed its state */
	EVENT_CONTINUED, /* SIGCONT to semlock */
	EVENT_SIGNAL,    /* another one */
	EVENT_TIME       /* the limit's next signal may be due */
};

/* Did the terminal send the signal to its whole foreground group? */
static bool is_of_group(int signo, const siginfo_t *info)
{
	switch (signo) {
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGWINCH:
		return info->si_code > 0;
	case SIGHUP:
		/* At a hangup the session leader gets SIGHUP whichever group is in the foreground:
		 * send it twice rather than not at all. */
		return info->si_code > 0 && getsid(0) != getpid();
	}
	return false;
}

/* Is the process above this one, the subreaper, the sender? */
static bool is_from_above(const struct supervised *supervised, const siginfo_t *info)
{
	return supervised->subreaper->above != 0 && info->si_pid == supervised->subreaper->above;
}

/* Did the terminal send the signal to the command as well? */
static bool command_has_it(const struct supervised *supervised, int signo, const siginfo_t *info)
{
	const pid_t group = getpgid(supervised->pid);

	if (is_from_above(supervised, info) && signal_has_mark(info, MARK_OF_GROUP))
		return group == supervised->subreaper->group;
	return is_of_group(signo, info) && group == getpgrp();
}

COLD static void stop_like_it(struct supervised *supervised, int signo)
{
	sigset_t set, cont = signals_only(SIGCONT);
	siginfo_t info;

	/* A SIGSTOP to the command alone does not stop semlock: the SIGCONT that follows goes to
	 * the command alone, too. */
	if (signo == SIGSTOP && supervised->keyboard)
		signo = SIGTSTP;
	supervised->keyboard = false;
	if (signo == SIGSTOP)
		return;
	set = signals_only(signo);
	do {
		/* the kernel drops it in an orphaned process group, where no shell would continue
		 * it */
		raise(signo);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		sigprocmask(SIG_BLOCK, &set, NULL);
		supervised->resumed = signals_wait(&cont, &info, 0) == SIGCONT;
	} while (supervised->resumed && parent_lost_thread(&info));
	if (supervised->resumed && parent_ended_by(SIGCONT))
		raise(SIGCONT); /* for next_event() */
	/* The holder, whose own group is not orphaned, is not to stay stopped then. */
	if (!supervised->resumed && supervised->subreaper->holder > 0)
		kill(supervised->pid, SIGCONT);
}

/* See to all children that have changed state.  Other children than the command were semlock's
 * before it was execed, or are orphans: semlock is process 1 of a container, or a subreaper.  Where
 * a lock names the command, that stays a zombie until command_reap(): a program that breaks the
 * locks of dead processes must not find it dead while the lock is there.  (Where waitid(2) is
 * refused, it is reaped at once, and its stops are not followed.) */
static void reap_children(struct supervised *supervised)
{
	const int flags = (supervised->command->policy & NAMED_BY_LOCK) != 0 ? WNOWAIT : 0;
	siginfo_t child = {.si_pid = 0};

	while (process_wait(P_ALL, 0, &child, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | flags) ==
		   0 &&
	       child.si_pid != 0) {
		const bool is_command = child.si_pid == supervised->pid;
		const bool ended = child.si_code != CLD_STOPPED && child.si_code != CLD_CONTINUED;

		if (is_command && ended) {
			supervised->over = true;
			supervised->command->state = flags != 0 ? COMMAND_ENDED : COMMAND_REAPED;
			supervised->result.how =
			    child.si_code == CLD_EXITED ? ENDED_EXIT : ENDED_SIGNAL;
			supervised->result.code = child.si_status;
			return;
		}
		/* Wait for what was seen, an end or a stop: a stopped command may have been killed
		 * since. */
		if (flags != 0)
			process_wait(P_PID, child.si_pid, &child,
			    (ended ? WEXITED : WSTOPPED | WCONTINUED) | WNOHANG);
		if (is_command && child.si_pid != 0) {
			supervised->stopped = child.si_code == CLD_STOPPED;
			if (supervised->stopped)
				stop_like_it(supervised, child.si_status);
		}
		child.si_pid = 0;
	}
	/* A SIGCONT to semlock alone goes on to the command.  If a shell sent it to the whole
	 * group, the command runs already: a second SIGCONT, a moment later, could undo the user's
	 * next Ctrl-Z. */
	if (supervised->resumed && supervised->stopped)
		kill(supervised->pid, SIGCONT);
	supervised->resumed = false;
}

/* To the command, or to the process group that it leads. */
static void send_to_command(const struct supervised *supervised, int signo)
{
	const bool group = (supervised->command->policy & LEADS_GROUP) != 0;

	kill(group ? -supervised->pid : supervised->pid, signo);
}

#define ENDS_COMMAND(signo) \
	((signo) == SIGTERM || (signo) == SIGINT || (signo) == SIGHUP || (signo) == SIGQUIT)

/* An ignored signal, as HUP under nohup(1), is no request to end; the command ignores it as
 * well. */
static bool asks_to_end(int signo)
{
	return ENDS_COMMAND(signo) && !signals_ignored(signo);
}

/* The limit's time is up: send its signal, and SIGCONT, for a stopped command does not act on it;
 * the next time, SIGKILL.  The command has not been waited for: its PID cannot be another
 * process's. */
static void enforce_limit(struct supervised *supervised)
{
	const struct limit *limit = &supervised->command->limit;
	int signo = supervised->asked_to_end ? SIGKILL : limit->signal;

	if (!supervised->asked_to_end || supervised->result.limit > LIMIT_KEPT)
		supervised->result.limit = signo == SIGKILL ? LIMIT_KILLS : LIMIT_REACHED;
	send_to_command(supervised, signo);
	if (signo != SIGKILL && signo != SIGCONT)
		send_to_command(supervised, SIGCONT);
	supervised->next = supervised->asked_to_end || limit->kill_after == 0
	                       ? deadline_never()
	                       : deadline_after(limit->kill_after);
	supervised->asked_to_end = true;
}

/* After a signal to semlock that asks to end, the command has as long as after the limit's own. */
static void start_countdown(struct supervised *supervised)
{
	if (supervised->asked_to_end || supervised->command->limit.kill_after == 0)
		return;
	supervised->asked_to_end = true;
	supervised->next = deadline_after(supervised->command->limit.kill_after);
}

/* sigtimedwait(2) is refused (by a sandbox, say): look every 10 ms.  Ignoring a pending signal for
 * a moment takes it from the queue, and its origin with it.  Returns -1 if none is pending; the
 * command may have ended. */
COLD static int poll_signal(siginfo_t *info)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t pending;

	poll(NULL, 0, 10);
	info->si_code = SI_USER;
	info->si_pid = 0;
	sigpending(&pending);
	for (int signo = 1; signo < NSIG; signo++)
		if (signo != SIGCHLD && sigismember(&pending, signo) == 1) {
			sigaction(signo, &ignore, &before);
			sigaction(signo, &before, NULL);
			info->si_signo = signo;
			return signo;
		}
	return -1;
}

/* Does a parent that leads semlock's process group send, as timeout(1) does?  Seen from a PID
 * namespace below theirs, both are 0. */
static bool is_from_leading_parent(const siginfo_t *info)
{
	return info->si_pid == getppid() && info->si_pid == getpgrp();
}

/* timeout(1) and others send a signal to their child, and to its whole process group at once: then
 * semlock gets it twice, or again from a semlock above it.  The command, which may be in that group
 * as well, is to get it from here once.  (A signal that its sender repeats later is passed on.)  On
 * a busy machine the sender may lose its processor between the two, to semlock among others. */
static bool is_repeated(struct supervised *supervised, int signo, const siginfo_t *info)
{
	const int64_t same = is_from_leading_parent(info) ? SECOND : SECOND / 10, other = SECOND;
	const struct sent now = {signo, info->si_pid, clock_now()}, last = supervised->last;
	const int64_t since = now.moment - last.moment;

	if (!ENDS_COMMAND(signo) || info->si_code > 0)
		return false;
	if (last.signo == signo && last.sender == now.sender && since < same)
		return true;
	if (last.signo == signo && last.sender != now.sender && since < other &&
	    (last.sender == getppid() || now.sender == getppid()))
		return true;
	supervised->last = now;
	return false;
}

/* From the subreaper to the holder, which leaves the group only when its command starts. */
static void relay(const struct supervised *supervised, int signo, const siginfo_t *info)
{
	const bool of_group = is_of_group(signo, info);
	const union sigval mark = {.sival_int = of_group ? MARK_OF_GROUP : 0};

	if (!of_group || getpgid(supervised->pid) != getpgrp())
		sigqueue(supervised->pid, signo, mark);
}

static void pass_on_signal(struct supervised *supervised, int signo, const siginfo_t *info)
{
	if (is_repeated(supervised, signo, info))
		return;
	if (supervised->subreaper->holder > 0) {
		relay(supervised, signo, info);
		return;
	}
	if (command_has_it(supervised, signo, info)) {
		supervised->keyboard = supervised->keyboard || signo == SIGTSTP;
		return;
	}
	if (ENDS_COMMAND(signo))
		send_to_command(supervised, signo);
	else
		kill(supervised->pid, signo);
	if (asks_to_end(signo))
		start_countdown(supervised);
}

/* --die-with-parent */
static void end_with_parent(struct supervised *supervised)
{
	const union sigval mark = {.sival_int = MARK_OF_PARENT};

	sigaddset(&supervised->got, SIGTERM);
	supervised->result.asked = supervised->result.orphaned = true;
	if (supervised->subreaper->holder > 0)
		sigqueue(supervised->pid, SIGTERM, mark);
	else
		send_to_command(supervised, SIGTERM);
	/* a stopped process does not act on it */
	send_to_command(supervised, SIGCONT);
	start_countdown(supervised);
}

static enum event next_event(struct supervised *supervised, siginfo_t *info)
{
	const struct command *command = supervised->command;
	sigset_t all;
	int signo;

	if (subreaper_killed(supervised->subreaper))
		return EVENT_SUBREAPER_KILLED;
	sigfillset(&all);
	signo = signals_wait(&all, info, deadline_left(&supervised->next));
	if (signo < 0 && errno != EINTR && errno != EAGAIN)
		signo = poll_signal(info);
	if (signo < 0)
		return EVENT_TIME;
	if (parent_ended_by(signo) ||
	    (is_from_above(supervised, info) && signal_has_mark(info, MARK_OF_PARENT)))
		return EVENT_PARENT_ENDED;
	if ((signo == SIGCONT && parent_lost_thread(info)) ||
	    subreaper_answers(supervised->subreaper, info))
		return EVENT_TIME;
	sigaddset(&supervised->got, signo);
	supervised->result.replaced = supervised->result.replaced ||
	                              (asks_to_end(signo) && signal_has_mark(info, MARK_REPLACED));
	supervised->result.asked = supervised->result.asked || asks_to_end(signo);
	if (signo == SIGCHLD)
		return command->state == COMMAND_EXECS && info->si_code == SI_QUEUE &&
		               info->si_pid == supervised->pid
		           ? EVENT_EXEC_FAILED
		           : EVENT_CHILD;
	return signo == SIGCONT ? EVENT_CONTINUED : EVENT_SIGNAL;
}

/* Has semlock received the signal that ended the command, or is that signal still pending for
 * it? */
COLD static bool semlock_got_it(const struct supervised *supervised)
{
	const struct result *result = &supervised->result;
	sigset_t pending;

	if (result->limit > LIMIT_KEPT && result->code == supervised->command->limit.signal)
		return false;
	sigpending(&pending);
	return sigismember(&supervised->got, result->code) == 1 ||
	       sigismember(&pending, result->code) == 1;
}

struct result supervise(struct command *command, struct subreaper *subreaper)
{
	struct supervised supervised = {.command = command,
	    .subreaper = subreaper,
	    .pid = command->pid,
	    .next = {.never = true}};
	siginfo_t info;
	bool was_stopped;

	sigemptyset(&supervised.got);
	if (command->limit.time > 0)
		supervised.next = deadline_after(command->limit.time);
	while (!supervised.over)
		switch (next_event(&supervised, &info)) {
		case EVENT_SUBREAPER_KILLED:
			/* leaves it a zombie, for command_reap() */
			subreaper_end_all(subreaper, command->pid);
			command->state = COMMAND_ENDED;
			return (struct result){.how = ENDED_SIGNAL, .code = SIGKILL};
		case EVENT_PARENT_ENDED:
			end_with_parent(&supervised);
			break;
		case EVENT_EXEC_FAILED:
			supervised.failure = info.si_value.sival_int;
			reap_children(&supervised);
			break;
		case EVENT_CHILD:
			reap_children(&supervised);
			break;
		case EVENT_CONTINUED:
			/* A shell continues a job by one signal to the whole group: has the command
			 * had it, too? */
			was_stopped = supervised.stopped;
			reap_children(&supervised);
			if (supervised.stopped == was_stopped && !supervised.over)
				pass_on_signal(&supervised, SIGCONT, &info);
			break;
		case EVENT_SIGNAL:
			pass_on_signal(&supervised, info.si_signo, &info);
			break;
		case EVENT_TIME:
			reap_children(&supervised);
			if (!supervised.over && deadline_left(&supervised.next) == 0)
				enforce_limit(&supervised);
		}
	/* A signal to the group that has ended the command may have reached the subreaper, too: a
	 * KILL ends it, and another one it has passed on before it answers. */
	if (supervised.result.how == ENDED_SIGNAL && !subreaper_lives(subreaper))
		subreaper_end_all(subreaper, command->state == COMMAND_ENDED ? command->pid : 0);
	if (supervised.failure != 0)
		return (struct result){.how = ENDED_NOT_RUN, .code = supervised.failure};
	supervised.result.received =
	    supervised.result.how == ENDED_SIGNAL && semlock_got_it(&supervised);
	return supervised.result;
}
