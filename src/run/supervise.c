/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/terminal.h"
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
	bool keyboard;        /* SIGTSTP came from the keyboard, to the whole foreground group */
	bool resumed;         /* semlock stopped like the command, and was continued */
	bool has_terminal;    /* semlock has passed the terminal to the command's group */
	struct deadline next; /* when the limit's next signal is due */
	/* the command was sent the limit's signal, or got a signal that asked semlock to end */
	bool asked_to_end;
	/* received; also SIGTERM if orphaned */
	sigset_t got;
	struct sent last; /* the last signal that asked to end and was passed on */
	bool over;        /* the command has ended, as RESULT says ... */
	struct result result;
	int failure; /* ... or its exec failed with this errno; 0: it did not */
};

enum event {
	EVENT_SUBREAPER_KILLED,
	EVENT_PARENT_ENDED, /* --die-with-parent */
	EVENT_EXEC_FAILED,
	EVENT_CHILD,     /* a child may have changed its state */
	EVENT_CONTINUED, /* SIGCONT to semlock */
	EVENT_SIGNAL,    /* another signal to semlock */
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
		/* At a hangup, the session leader gets SIGHUP whatever group is in the foreground,
		 * so the command may not have got it: better send it twice than not at all. */
		return info->si_code > 0 && getsid(0) != getpid();
	}
	return false;
}

/* Did the subreaper, the process above this one, send the signal of INFO? */
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

/* Send SIGNO to the command, or to the process group that it leads. */
static void send_to_command(const struct supervised *supervised, int signo)
{
	const bool group = (supervised->command->policy & LEADS_GROUP) != 0;

	kill(group ? -supervised->pid : supervised->pid, signo);
}

/* ---- the terminal, when the command leads a group of its own ----
 *
 * If a background job is brought to the foreground, the shell gives the terminal to semlock's
 * group, because it knows no other.  When the command uses the terminal, SIGTTIN or SIGTTOU stops
 * it. */

/* The process group of semlock's caller. */
static pid_t own_group(const struct supervised *supervised)
{
	return supervised->subreaper->above != 0 ? supervised->subreaper->group : getpgrp();
}

/* Did SIGNO stop the command because its group does not have the terminal? */
static bool wants_terminal(const struct supervised *supervised, int signo)
{
	return (supervised->command->policy & LEADS_GROUP) != 0 &&
	       (signo == SIGTTIN || signo == SIGTTOU);
}

/* If semlock's group has the terminal, pass it to the command's, and continue the command. */
static bool hand_terminal_over(struct supervised *supervised)
{
	if (!terminal_pass(own_group(supervised), supervised->pid))
		return false;
	supervised->has_terminal = true;
	send_to_command(supervised, SIGCONT);
	return true;
}

/* The command has stopped or ended.  Returns false if its group did not have the terminal: it never
 * got it, or a shell has taken it since. */
static bool take_terminal_back(struct supervised *supervised)
{
	const bool had = supervised->has_terminal;

	supervised->has_terminal = false;
	return had && terminal_pass(supervised->pid, own_group(supervised));
}

/* The kernel sent SIGNO to the command's group alone: send it to semlock's group, too.  A shell
 * sees a job as stopped, and continues it, only if all its processes are stopped. */
static void stop_job(const struct supervised *supervised, int signo)
{
	kill(-own_group(supervised), signo);
}

/* Stop by SIGNO, unless a SIGCONT has come since the command stopped: a shell that watches another
 * process of the job may continue the whole group before semlock has stopped.  Then do not call
 * raise(3), which would discard the SIGCONT.  If stop_job() has sent SIGNO to this process, too,
 * SIGNO is still pending, and stops it now; or the SIGCONT has discarded SIGNO. */
static void stop_unless_continued(int signo)
{
	const sigset_t set = signals_only(signo);
	sigset_t pending;

	CRASH_POINT("supervise.stops");
	sigpending(&pending);
	if (sigismember(&pending, signo) == 0 && sigismember(&pending, SIGCONT) == 0)
		raise(signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void stop_like_it(struct supervised *supervised, int signo)
{
	sigset_t cont = signals_only(SIGCONT);
	siginfo_t info;

	if (wants_terminal(supervised, signo)) {
		if (hand_terminal_over(supervised))
			return;
		stop_job(supervised, signo);
	} else if (take_terminal_back(supervised)) {
		supervised->keyboard = true;
		stop_job(supervised, SIGTSTP);
	}
	/* A SIGSTOP to the command alone does not stop semlock: the SIGCONT that follows will go to
	 * the command alone, too. */
	if (signo == SIGSTOP && supervised->keyboard)
		signo = SIGTSTP;
	supervised->keyboard = false;
	if (signo == SIGSTOP)
		return;
	do {
		/* the kernel drops SIGNO in an orphaned process group, which no shell would
		 * continue */
		stop_unless_continued(signo);
		supervised->resumed = signals_wait(&cont, &info, 0) == SIGCONT;
	} while (supervised->resumed && parent_lost_thread(&info));
	if (supervised->resumed && parent_ended_by(SIGCONT))
		raise(SIGCONT); /* next_event() is to receive it again */
	/* If this is a subreaper, and did not stop, its holder, whose group is not orphaned, must
	 * not stay stopped either. */
	if (!supervised->resumed && supervised->subreaper->holder > 0)
		kill(supervised->pid, SIGCONT);
}

/* Handle all children that have changed state.  Children other than the command belonged to the
 * process that became semlock (exec), or are orphans, which a subreaper or process 1 of a container
 * adopts.
 *
 * If a lock names the command, leave the command a zombie until command_reap(): a program that
 * breaks the locks of dead processes must find its PID as long as the lock exists.  (Where
 * waitid(2) is refused, the command is reaped at once, and its stops are not followed.) */
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
		/* Consume only what was seen, the end or the stop: a stopped command may have been
		 * killed since, and the next round must see that. */
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
	/* Pass on a SIGCONT that semlock alone has received.  If a shell sent it to the whole
	 * group, the command runs already, and a second SIGCONT could undo the user's next
	 * Ctrl-Z. */
	if (supervised->resumed && supervised->stopped)
		send_to_command(supervised, SIGCONT);
	supervised->resumed = false;
}

/* An ignored signal, such as HUP under nohup(1), does not ask to end; the command ignores it
 * too. */
static bool asks_to_end(int signo)
{
	return is_ending_signal(signo) && !signals_ignored(signo);
}

/* NEXT is reached.  If ASKED_TO_END is set, send SIGKILL.  Otherwise send the limit's signal, and
 * then SIGCONT, because a stopped command does not act on that signal.  The command is not reaped
 * yet, so that its PID cannot be another process's. */
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

/* A signal has asked semlock to end, and was passed on: as after the limit, send SIGKILL after
 * --kill-after. */
static void start_countdown(struct supervised *supervised)
{
	if (supervised->asked_to_end || supervised->command->limit.kill_after == 0)
		return;
	supervised->asked_to_end = true;
	supervised->next = deadline_after(supervised->command->limit.kill_after);
}

/* sigtimedwait(2) is refused (by a sandbox): look every 10 ms.  Ignoring a pending signal for a
 * moment removes it from the queue, which also loses who sent it.  Returns the signal; or -1 if
 * none is pending, but the command may have ended. */
static int poll_signal(siginfo_t *info)
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

/* Is the sender a parent that leads semlock's process group, as timeout(1) does?  If it is in a PID
 * namespace above, all three numbers are 0. */
static bool is_from_leading_parent(const siginfo_t *info)
{
	return info->si_pid == getppid() && info->si_pid == getpgrp();
}

/* Is the signal a repetition, which must not be passed on?  timeout(1) and others signal their
 * child and then its whole process group: semlock gets the signal twice, or once more from a
 * semlock above it.  The command may be in that group as well, and must get the signal from semlock
 * only once.  On a busy machine, the sender may lose the processor between its two calls, for
 * instance to semlock.  (A signal that is sent again after that is no repetition.) */
static bool is_repeated(struct supervised *supervised, int signo, const siginfo_t *info)
{
	const int64_t same = is_from_leading_parent(info) ? SECOND : SECOND / 10, other = SECOND;
	const struct sent now = {signo, info->si_pid, clock_now()}, last = supervised->last;
	const int64_t since = now.moment - last.moment;

	if (!is_ending_signal(signo) || info->si_code > 0)
		return false;
	if (last.signo == signo && last.sender == now.sender && since < same)
		return true;
	if (last.signo == signo && last.sender != now.sender && since < other &&
	    (last.sender == getppid() || now.sender == getppid()))
		return true;
	supervised->last = now;
	return false;
}

/* Pass SIGNO from the subreaper on to the holder, unless the terminal has sent it to the holder,
 * too: until its command starts, the holder is in the subreaper's group. */
static void supervise_relay(const struct supervised *supervised, int signo, const siginfo_t *info)
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
		supervise_relay(supervised, signo, info);
		return;
	}
	if (command_has_it(supervised, signo, info)) {
		supervised->keyboard = supervised->keyboard || signo == SIGTSTP;
		return;
	}
	if (is_ending_signal(signo) || signo == SIGCONT)
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
	/* a stopped process would not act on SIGTERM */
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
static bool semlock_got_it(const struct supervised *supervised)
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
			/* leaves the command a zombie, for command_reap() */
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
			/* A shell continues a job with one SIGCONT to the whole group: has the
			 * command had it, too? */
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
	/* The signal that ended the command may have gone to the whole group, and so to the
	 * subreaper.  A KILL ends the subreaper.  The subreaper passes any other signal on before
	 * it answers. */
	if (supervised.result.how == ENDED_SIGNAL && !subreaper_lives(subreaper))
		subreaper_end_all(subreaper, command->state == COMMAND_ENDED ? command->pid : 0);
	if (supervised.failure != 0)
		return (struct result){.how = ENDED_NOT_RUN, .code = supervised.failure};
	supervised.result.received =
	    supervised.result.how == ENDED_SIGNAL && semlock_got_it(&supervised);
	/* Ctrl-C or Ctrl-\ reached only the command's group, which had the terminal: act as if
	 * semlock had received it, too */
	if (take_terminal_back(&supervised) && supervised.result.how == ENDED_SIGNAL &&
	    (supervised.result.code == SIGINT || supervised.result.code == SIGQUIT))
		supervised.result.received = supervised.result.asked = true;
	return supervised.result;
}
