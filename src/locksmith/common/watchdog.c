#include <config.h>

#include "locksmith/common/watchdog.h"

#include "locksmith/common/clock.h"
#include "sys/pipe_holders.h"
#include "sys/process.h"
#include "sys/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum stage {
	STAGE_IDLE,
	STAGE_ARMED,
	STAGE_LEFT, /* semlock is at work: the command is left to it */
	STAGE_TERMED,
	STAGE_KILLED
};

static struct {
	pid_t parent;
	int parent_fd;
	bool parent_gone;
	pid_t child;
	int child_fd;
	unsigned long long since; /* when the child started: older children of semlock are spared */
	enum stage stage;
	int64_t term_at;
	int64_t step_in_at; /* semlock has sent TERM by then, unless it is stopped */
	int64_t kill_at;
} watchdog = {.parent_fd = -1, .child_fd = -1};

void watchdog_start(void)
{
	watchdog.parent = getppid();
	watchdog.parent_fd = pidfd_of(watchdog.parent);
	/* Semlock may have ended before the pidfd was open. */
	if (getppid() != watchdog.parent)
		watchdog.parent_gone = true;
}

int watchdog_parent_fd(void)
{
	return watchdog.parent_gone ? -1 : watchdog.parent_fd;
}

bool watchdog_parent_gone(void)
{
	/* The new parent is init or a subreaper. */
	if (!watchdog.parent_gone && getppid() != watchdog.parent)
		watchdog.parent_gone = true;
	return watchdog.parent_gone;
}

/* A stopped semlock sends no TERM to the command, and reads no LOST. */
static bool parent_stopped(void)
{
	struct procfs_stat stat;

	return process_stat(watchdog.parent, &stat) && (stat.state == 'T' || stat.state == 't');
}

int watchdog_child(pid_t pid)
{
	struct procfs_stat stat;

	if (watchdog.child_fd >= 0)
		close(watchdog.child_fd);
	watchdog.child = pid;
	watchdog.since = process_stat(pid, &stat) ? stat.started : 0;
	watchdog.child_fd = pidfd_of(pid);
	if (watchdog.child_fd < 0 && errno == ENOSYS)
		return kill(pid, 0) == 0 || errno == EPERM ? 0 : -1;
	return watchdog.child_fd >= 0 ? 0 : -1;
}

void watchdog_lease(int64_t deadline, int64_t lease)
{
	watchdog.term_at = deadline - lease / 3;
	watchdog.step_in_at = deadline - lease * 3 / 10;
	watchdog.kill_at = deadline - lease / 20;
	if (watchdog.stage != STAGE_KILLED)
		watchdog.stage = STAGE_ARMED;
}

void watchdog_lost(void)
{
	int64_t now = clock_boottime();

	watchdog.term_at = now;
	watchdog.step_in_at = now + NS_PER_S / 10;
	watchdog.kill_at = clock_min(watchdog.kill_at, now + NS_PER_S);
	if (watchdog.stage == STAGE_IDLE) {
		watchdog.kill_at = now;
		watchdog.stage = STAGE_ARMED;
	}
}

void watchdog_over(void)
{
	watchdog.stage = STAGE_IDLE;
}

int64_t watchdog_next(void)
{
	switch (watchdog.stage) {
	case STAGE_ARMED:
		return clock_min(watchdog.parent_gone ? watchdog.term_at : watchdog.step_in_at, watchdog.kill_at);
	case STAGE_LEFT:
	case STAGE_TERMED:
		return watchdog.kill_at;
	default:
		return NEVER;
	}
}

/* While semlock lives, it is the subreaper of all that the command has started. */
static void signal_holders(int sig)
{
	struct pipe_holders pipe_holders = {.pipe = STDIN_FILENO, .elder = watchdog.child};

	if (!watchdog_parent_gone()) {
		pipe_holders.except = watchdog.parent;
		pipe_holders.elder = watchdog.child > 0 ? watchdog.parent : 0;
		pipe_holders.since = watchdog.since;
	}
	/* Without CHILD, a process may have the pipe open for other reasons. */
	if (watchdog_parent_gone() || watchdog.child > 0)
		pipe_holders_signal(&pipe_holders, sig);
}

static void send(int sig)
{
	if (watchdog.child_fd >= 0)
		pidfd_send(watchdog.child_fd, sig);
	else if (watchdog.child > 0)
		kill(watchdog.child, sig);
	signal_holders(sig);
}

bool watchdog_act(void)
{
	int64_t now = clock_boottime();
	bool gone = watchdog_parent_gone();

	if (watchdog.stage == STAGE_LEFT && gone)
		watchdog.stage = STAGE_ARMED;
	if (watchdog.stage == STAGE_ARMED && now >= (gone ? watchdog.term_at : watchdog.step_in_at)) {
		watchdog.stage = gone || parent_stopped() ? STAGE_TERMED : STAGE_LEFT;
		if (watchdog.stage == STAGE_TERMED) {
			send(SIGTERM);
			send(SIGCONT); /* a stopped command handles TERM only when it runs */
		}
	}
	if (watchdog.stage == STAGE_KILLED) {
		signal_holders(SIGKILL); /* again: a search misses a process forked meanwhile */
	} else if (watchdog.stage != STAGE_IDLE && now >= watchdog.kill_at) {
		send(SIGKILL);
		watchdog.stage = STAGE_KILLED;
	}
	return watchdog.stage == STAGE_KILLED;
}
