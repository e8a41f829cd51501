#include <config.h>

#include "locksmith/common/watchdog.h"

#include "locksmith/common/clock.h"
#include "sys/pipe_holders.h"
#include "sys/process.h"
#include "sys/pidfd.h"
#include "sys/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum stage {
	STAGE_IDLE,
	STAGE_ARMED,
	STAGE_LEFT, /* to semlock, which is at work */
	STAGE_TERMED,
	STAGE_KILLED
};

static struct {
	pid_t core;
	int core_fd;
	bool core_gone;
	pid_t child;
	int child_fd;
	unsigned long long since; /* when it started: semlock may have had children before */
	enum stage stage;
	int64_t term_at;
	int64_t step_in_at; /* semlock has done it by then, unless it is stopped */
	int64_t kill_at;
} guard = {.core_fd = -1, .child_fd = -1};

void watchdog_start(void)
{
	guard.core = getppid();
	guard.core_fd = pidfd_of(guard.core);
	/* It may have ended before the descriptor was open. */
	if (getppid() != guard.core)
		guard.core_gone = true;
}

pid_t watchdog_core(void)
{
	return guard.core;
}

int watchdog_core_fd(void)
{
	return guard.core_gone ? -1 : guard.core_fd;
}

bool watchdog_core_gone(void)
{
	/* A subreaper or a new parent, whichever it is: not the one that started us. */
	if (!guard.core_gone && getppid() != guard.core)
		guard.core_gone = true;
	return guard.core_gone;
}

/* Stopped, it neither tells the command to end nor hears us. */
static bool core_stopped(void)
{
	struct procfs_stat stat;

	return process_stat(guard.core, &stat) && (stat.state == 'T' || stat.state == 't');
}

int watchdog_child(pid_t pid)
{
	struct procfs_stat stat;

	if (guard.child_fd >= 0)
		close(guard.child_fd);
	guard.child = pid;
	guard.since = process_stat(pid, &stat) ? stat.started : 0;
	guard.child_fd = pidfd_of(pid);
	if (guard.child_fd < 0 && errno == ENOSYS)
		return kill(pid, 0) == 0 || errno == EPERM ? 0 : -1;
	return guard.child_fd >= 0 ? 0 : -1;
}

void watchdog_lease(int64_t deadline, int64_t lease)
{
	guard.term_at = deadline - lease / 3;
	guard.step_in_at = deadline - lease * 3 / 10;
	guard.kill_at = deadline - lease / 20;
	if (guard.stage != STAGE_KILLED)
		guard.stage = STAGE_ARMED;
}

void watchdog_lost(void)
{
	int64_t now = boottime_now();

	guard.term_at = now;
	guard.step_in_at = now + NS_PER_S / 10;
	if (guard.stage == STAGE_IDLE)
		guard.kill_at = now;
	guard.kill_at = clock_min(guard.kill_at, now + NS_PER_S);
	if (guard.stage == STAGE_IDLE)
		guard.stage = STAGE_ARMED;
}

void watchdog_over(void)
{
	guard.stage = STAGE_IDLE;
}

int64_t watchdog_next(void)
{
	switch (guard.stage) {
	case STAGE_ARMED:
		return clock_min(guard.core_gone ? guard.term_at : guard.step_in_at, guard.kill_at);
	case STAGE_LEFT:
	case STAGE_TERMED:
		return guard.kill_at;
	default:
		return NEVER;
	}
}

/* While semlock lives, it is the subreaper of all that the command has started. */
static void signal_holders(int sig)
{
	struct pipe_holders pipe_holders = {.pipe = STDIN_FILENO, .elder = guard.child};

	if (!watchdog_core_gone()) {
		pipe_holders.except = guard.core;
		pipe_holders.elder = guard.child > 0 ? guard.core : 0;
		pipe_holders.since = guard.since;
	}
	/* Who has named no command may have the pipe open for other reasons. */
	if (watchdog_core_gone() || guard.child > 0)
		pipe_holders_signal(&pipe_holders, sig);
}

static void send(int sig)
{
	if (guard.child_fd >= 0)
		pidfd_send(guard.child_fd, sig);
	else if (guard.child > 0)
		kill(guard.child, sig);
	signal_holders(sig);
}

static void tell_to_end(void)
{
	send(SIGTERM);
	send(SIGCONT); /* a stopped command hears TERM only when it goes on */
	guard.stage = STAGE_TERMED;
}

bool watchdog_act(void)
{
	int64_t now = boottime_now();
	bool gone = watchdog_core_gone();

	if (guard.stage == STAGE_LEFT && gone)
		guard.stage = STAGE_ARMED;
	if (guard.stage == STAGE_ARMED && now >= (gone ? guard.term_at : guard.step_in_at)) {
		if (gone || core_stopped())
			tell_to_end();
		else
			guard.stage = STAGE_LEFT;
	}
	if (guard.stage == STAGE_KILLED) {
		signal_holders(SIGKILL); /* one look may miss what is forked meanwhile */
	} else if (guard.stage != STAGE_IDLE && now >= guard.kill_at) {
		send(SIGKILL);
		guard.stage = STAGE_KILLED;
	}
	return guard.stage == STAGE_KILLED;
}
