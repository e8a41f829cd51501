/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/open_fds.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"
#include "run/subreaper.h"

/* Will the first child begin a new PID namespace?  After unshare --pid, it is process 1 there, and
 * its death ends all processes of that namespace.  The command has to be that child: a holder in
 * its place would not receive signals.  Until there is a first child, the link pid_for_children
 * exists and leads nowhere. */
static bool child_begins_namespace(void)
{
	static const char children[] = "/proc/self/ns/pid_for_children";
	struct stat own, theirs;

	return lstat(children, &theirs) == 0 && stat("/proc/self/ns/pid", &own) == 0 &&
	       (stat(children, &theirs) != 0 || own.st_ino != theirs.st_ino);
}

/* Does a shell watch the caller's process group as a job that it can stop and continue?  Then a
 * process of the group has a parent in the same session but another group.  In cron and CI none
 * has: the group is orphaned. */
static bool group_is_watched(void)
{
	const pid_t group = getpgrp(), session = getsid(0);
	struct procfs_stat seen;
	pid_t pid = getppid();

	while (pid > 0 && getpgid(pid) == group) {
		if (!process_stat(pid, &seen))
			return false;
		pid = seen.parent;
	}
	return pid > 0 && getsid(pid) == session;
}

/* In the holder: leave the caller's process group.  If no shell watches that group, leave the
 * session too.  A holder in the same session, as the command's parent, would keep the group from
 * being orphaned until the command ends.  At that moment, the kernel would send the group SIGHUP if
 * any process of it is stopped. */
static void leave_group(const struct subreaper *subreaper)
{
	if (subreaper->watched)
		setpgid(0, 0);
	else
		setsid();
}

/* In the subreaper: start the thread that watches the parent, if one is needed; then let the holder
 * go on.  Returns 0, or -1 with ERROR filled. */
static int let_go_on(struct subreaper *subreaper, struct error *error)
{
	if (parent_watch_from_afar() != 0)
		return error_no_process(error);
	return write_without_sigpipe(subreaper->kept[0], "", 1) == 1
	           ? 0
	           : error_set(error, ERROR_SYSTEM, "cannot start the holding process");
}

int subreaper_start(struct subreaper *subreaper, struct error *error)
{
	struct sigaction wait_for_it = {.sa_handler = SIG_DFL}, child;
	sigset_t only_child = signals_only(SIGCHLD), before;
	pid_t parent = getpid(), pid;
	struct procfs_stat holder;
	siginfo_t info;
	bool elders = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
	struct timespec tick = {0, (long)(SECOND / sysconf(_SC_CLK_TCK) + MILLISECOND)};
	ssize_t got;
	char byte;

	if (child_begins_namespace())
		return 0;
	subreaper->group = getpgrp();
	subreaper->watched = group_is_watched();
	if (descriptor_socket_pair(subreaper->kept) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pair of sockets");
	/* Block only SIGCHLD.  If another signal were blocked, and came from the keyboard before
	 * the fork, only the subreaper would get it.  It would not pass the signal on, because the
	 * keyboard's signals normally reach the holder, too. */
	sigprocmask(SIG_BLOCK, &only_child, &before);
	sigaction(SIGCHLD, &wait_for_it, &child);
	/* A shell may have started jobs and then become semlock (exec).  Spare these: descendants
	 * of the holder are not older than the holder.  Start times are in clock ticks, so wait for
	 * the next tick. */
	while (elders && nanosleep(&tick, &tick) != 0 && errno == EINTR)
		;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0)
		return error_no_process(error);
	if (pid > 0) {
		signals_block_all(NULL);
		if (let_go_on(subreaper, error) != 0) {
			kill(pid, SIGKILL); /* else the holder would wait forever */
			return -1;
		}
		if (elders && process_stat(pid, &holder))
			subreaper->since = holder.started;
		subreaper->holder = pid;
		return 0;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	subreaper->above = parent;
	/* Wait until the subreaper has blocked its signals.  Until then, a signal to the subreaper
	 * ends both; once the command runs, the subreaper passes signals on to it. */
	UNINTERRUPTED(got, read(subreaper->kept[1], &byte, 1));
	if (got != 1)
		return error_set(error, ERROR_SYSTEM, "cannot start the holding process");
	sigaction(SIGCHLD, &child, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return 0;
}

pid_t subreaper_or_self(const struct subreaper *subreaper)
{
	return subreaper->above != 0 ? subreaper->above : getpid();
}

/* Send FD over the pair of sockets.  A descriptor that is sent and not received stays open as long
 * as the socket is open in either process.  The holder can take FD back without the subreaper's
 * help. */
static int subreaper_keep(struct subreaper *subreaper, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof fd)];
	} control = {.room = {0}};
	struct iovec bytes = {&subreaper->spared, sizeof subreaper->spared};
	struct msghdr message = {.msg_iov = &bytes,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof control.room};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(rights), &fd, sizeof fd);
	return sendmsg(subreaper->kept[0], &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Take back the descriptor of subreaper_keep(), and the PID of the child to spare.  Returns the
 * descriptor, or -1: there was none. */
static int take_back(struct subreaper *subreaper)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = {&subreaper->spared, sizeof subreaper->spared};
	struct msghdr message = {.msg_iov = &bytes,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof control.room};
	struct cmsghdr *rights;
	int fd = -1;

	if (recvmsg(subreaper->kept[1], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) ==
		(ssize_t)sizeof subreaper->spared &&
	    (rights = CMSG_FIRSTHDR(&message)) != NULL)
		memcpy(&fd, CMSG_DATA(rights), sizeof fd);
	return fd;
}

/* The subreaper's death brings SIGCONT (PR_SET_PDEATHSIG): a stopped holder must run to see that
 * the subreaper is gone. */
int subreaper_command_starts(struct subreaper *subreaper, int fd, pid_t except, struct error *error)
{
	subreaper->spared = except;
	if (subreaper->above == 0)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	leave_group(subreaper);
	if (fd >= 0 && subreaper_keep(subreaper, fd) != 0)
		return error_set(error, ERROR_SYSTEM,
		    "cannot hand the helper's pipe to the outer process");
	return 0;
}

void subreaper_command_ended(struct subreaper *subreaper)
{
	int fd = subreaper->above != 0 ? take_back(subreaper) : -1;

	if (fd >= 0)
		close(fd);
}

bool subreaper_killed(const struct subreaper *subreaper)
{
	return subreaper->above != 0 && getppid() != subreaper->above;
}

/* A signal that other programs do not send. */
#define SIGNAL_OF_TWO SIGRTMAX

/* A KILL to the group hits the subreaper as well as the command, but the two may end in any order:
 * ask the subreaper.  A process that is about to end does not answer. */
bool subreaper_lives(const struct subreaper *subreaper)
{
	const union sigval asks = {.sival_int = MARK_ASKS};
	const struct timespec between_looks = {0, 20 * MILLISECOND};
	const struct deadline patience = deadline_after(10 * SECOND);
	sigset_t answer = signals_only(SIGNAL_OF_TWO);
	siginfo_t info;

	if (subreaper->above == 0)
		return true;
	if (sigqueue(subreaper->above, SIGNAL_OF_TWO, asks) != 0)
		nanosleep(&between_looks, NULL);
	while (!subreaper_killed(subreaper) && deadline_left(&patience) > 0) {
		if (signals_wait(&answer, &info, between_looks.tv_nsec) == SIGNAL_OF_TWO)
			return true;
		if (errno != EAGAIN && errno != EINTR) { /* refused, for example by a sandbox */
			nanosleep(&between_looks, NULL);
			break;
		}
		if (process_stopped_or_traced(subreaper->above))
			return true;
	}
	return !subreaper_killed(subreaper);
}

bool subreaper_answers(const struct subreaper *subreaper, const siginfo_t *info)
{
	const union sigval answers = {.sival_int = MARK_ANSWERS};

	if (subreaper->holder == 0 || info->si_pid != subreaper->holder ||
	    !signal_has_mark(info, MARK_ASKS))
		return false;
	sigqueue(subreaper->holder, SIGNAL_OF_TWO, answers);
	return true;
}

/* All descendants except those to spare.  COMMAND (0: none) is left for command_reap(). */
static struct pipe_holders descendants(const struct subreaper *subreaper, pid_t command)
{
	return (struct pipe_holders){.pipe = -1,
	    .ancestor = getpid(),
	    .since = subreaper->since,
	    .except = subreaper->spared,
	    .unreaped = command};
}

/* Kill ALL until none is left and, unless COMMAND is 0, COMMAND has ended.  If a process may not be
 * signalled, wait for its end. */
static void kill_all(struct pipe_holders *all, pid_t command)
{
	struct timespec pause = {0, MILLISECOND};
	bool left = true, ended;

	while (left) {
		/* Ask before the search whether COMMAND has ended: if it ends during the search, it
		 * may have forked before, and another search is needed. */
		ended = command > 0 && !process_child_lives(command);
		left = pipe_holders_signal(all, SIGKILL) > 0;
		nap(pause.tv_nsec);
		left = (command > 0 ? !ended : pipe_holders_reap()) || left;
		if (pause.tv_nsec < SECOND / 2)
			pause.tv_nsec *= 2;
	}
}

void subreaper_end_all(struct subreaper *subreaper, pid_t command)
{
	struct pipe_holders all;

	/* in the subreaper: find out which child to spare; the helper's pipe, which comes with
	 * that, stays open until this process ends */
	if (subreaper->above == 0)
		take_back(subreaper);
	all = descendants(subreaper, command);
	if (command > 0)
		kill(command, SIGKILL); /* directly: /proc may not be mounted */
	kill_all(&all, command);
}

void subreaper_end_rest(struct subreaper *subreaper, pid_t command, int64_t grace)
{
	struct pipe_holders rest = descendants(subreaper, command);
	const struct deadline deadline = deadline_after(grace);
	struct timespec pause = {0, MILLISECOND};
	bool left = grace > 0 && pipe_holders_signal(&rest, SIGTERM) > 0;

	/* a stopped process does not act on SIGTERM */
	if (left)
		pipe_holders_signal(&rest, SIGCONT);
	while (left && deadline_left(&deadline) > 0) {
		nap(pause.tv_nsec);
		if (pause.tv_nsec < SECOND / 20)
			pause.tv_nsec *= 2;
		left = (command == 0 && pipe_holders_reap()) || pipe_holders_signal(&rest, 0) > 0;
	}
	kill_all(&rest, command);
}
