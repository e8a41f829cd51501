#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/deadline.h"
#include "report/exitcode.h"
#include "sys/pipe_holders.h"
#include "sys/process.h"
#include "run/relay.h"
#include "report/error.h"
#include "run/supervise.h"

static pid_t relay; /* in the holder; 0: there is none */
static pid_t spared;
static unsigned long long since; /* in the relay: a child that it had before is spared */

/* unshare --pid: the first child is process 1 of its PID namespace, and takes all in there along when it
 * dies.  That is the command, then; a signal to a holder in its place would be thrown away.  Before there is
 * a first child, the link is there and leads nowhere. */
static bool child_begins_namespace(void)
{
	static const char children[] = "/proc/self/ns/pid_for_children";
	struct stat own, theirs;

	return lstat(children, &theirs) == 0 && stat("/proc/self/ns/pid", &own) == 0 &&
	       (stat(children, &theirs) != 0 || own.st_ino != theirs.st_ino);
}

/* As the holder has: its caller cannot tell the two. */
static noreturn void end_like(const struct result *result)
{
	static const struct rlimit none = {0, 0};
	sigset_t it;

	if (result->how == ENDED_EXIT)
		exit(result->code);
	setrlimit(RLIMIT_CORE, &none);
	signal(result->code, SIG_DFL);
	sigemptyset(&it);
	sigaddset(&it, result->code);
	raise(result->code);
	sigprocmask(SIG_UNBLOCK, &it, NULL);
	exit(128 + result->code); /* process 1 of a container does not die of it */
}

/* A shell may have started jobs (ELDERS), and then have become semlock: a child counts as the holder's only
 * if it is younger, and a tick of the clock is all that tells. */
static noreturn void pass_on(pid_t holder, bool elders)
{
	static const struct command nothing;
	struct procfs_stat stat;
	struct result result;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (elders && process_stat(holder, &stat))
		since = stat.started + 1;
	result = supervise(&nothing, holder, &all);
	if (result.how == ENDED_SIGNAL && result.code == SIGKILL)
		relay_end_all(0);
	end_like(&result);
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void relay_start(void)
{
	struct sigaction wait_for_it = {.sa_handler = SIG_DFL}, child;
	pid_t parent = getpid(), pid;
	bool elders = has_children();
	sigset_t blocked, before;

	if (child_begins_namespace())
		return;
	/* No other signal: one that comes between here and the fork would reach the relay alone, and a
	 * key's not be passed on. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigaction(SIGCHLD, &wait_for_it, &child);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0)
		die(EXIT_SYSTEM, "cannot start a process: %s", strerror(errno));
	if (pid > 0)
		pass_on(pid, elders);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	relay = parent;
	sigaction(SIGCHLD, &child, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* SIGCONT: also a holder that is stopped has to hear of it. */
void relay_command_starts(pid_t except)
{
	spared = except;
	if (relay != 0)
		prctl(PR_SET_PDEATHSIG, SIGCONT);
}

bool relay_killed(void)
{
	return relay != 0 && getppid() != relay;
}

/* A process that may not be killed is waited for. */
void relay_end_all(pid_t command)
{
	struct pipe_holders all = {.pipe = -1, .elder = getpid(), .since = since, .except = spared};
	struct timespec pause = {0, MILLISECOND};
	bool left = true;

	if (command > 0)
		kill(command, SIGKILL); /* there may be no /proc */
	while (left) {
		left = pipe_holders_signal(&all, SIGKILL) > 0;
		nanosleep(&pause, NULL);
		/* A process that was reaped may have forked during the look. */
		left = pipe_holders_reap() || left;
		if (pause.tv_nsec < SECOND / 2)
			pause.tv_nsec *= 2;
	}
	while (command > 0 && waitpid(command, NULL, 0) < 0 && errno == EINTR)
		;
}
