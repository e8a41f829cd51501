#include <config.h>

#include "locksmith/guard.h"

#include "locksmith/clock.h"
#include "locksmith/holders.h"
#include "pidfd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum stage { STAGE_IDLE, STAGE_ARMED, STAGE_TERMED, STAGE_KILLED };

static struct {
	pid_t core;
	int core_fd;
	bool core_gone;
	pid_t child;
	int child_fd;
	enum stage stage;
	int64_t term_at;
	int64_t kill_at;
} guard = {.core_fd = -1, .child_fd = -1};

void guard_start(void)
{
	guard.core = getppid();
	guard.core_fd = pidfd_of(guard.core);
	/* It may have ended before the descriptor was open. */
	if (getppid() != guard.core)
		guard.core_gone = true;
}

pid_t guard_core(void)
{
	return guard.core;
}

int guard_core_fd(void)
{
	return guard.core_gone ? -1 : guard.core_fd;
}

bool guard_core_gone(void)
{
	/* A subreaper or a new parent, whichever it is: not the one that started us. */
	if (!guard.core_gone && getppid() != guard.core)
		guard.core_gone = true;
	return guard.core_gone;
}

int guard_child(pid_t pid)
{
	if (guard.child_fd >= 0)
		close(guard.child_fd);
	guard.child = pid;
	guard.child_fd = pidfd_of(pid);
	if (guard.child_fd < 0 && errno == ENOSYS)
		return kill(pid, 0) == 0 || errno == EPERM ? 0 : -1;
	return guard.child_fd >= 0 ? 0 : -1;
}

void guard_lease(int64_t deadline, int64_t lease)
{
	guard.term_at = deadline - lease / 3;
	guard.kill_at = deadline - lease / 20;
	if (guard.stage != STAGE_KILLED)
		guard.stage = STAGE_ARMED;
}

void guard_lost(void)
{
	int64_t now = clock_now();

	guard.term_at = now;
	if (guard.stage == STAGE_IDLE)
		guard.kill_at = now;
	guard.kill_at = clock_min(guard.kill_at, now + NS_PER_S);
	if (guard.stage == STAGE_IDLE)
		guard.stage = STAGE_ARMED;
}

int64_t guard_next(void)
{
	switch (guard.stage) {
	case STAGE_ARMED:
		return guard.core_gone ? clock_min(guard.term_at, guard.kill_at) : guard.kill_at;
	case STAGE_TERMED:
		return guard.kill_at;
	default:
		return NEVER;
	}
}

static void send(int sig)
{
	if (guard.child_fd >= 0)
		pidfd_send(guard.child_fd, sig);
	else if (guard.child > 0)
		kill(guard.child, sig);
	if (guard_core_gone())
		holders_signal(STDIN_FILENO, sig, 0);
}

bool guard_act(void)
{
	int64_t now = clock_now();
	bool gone = guard_core_gone();

	if (guard.stage == STAGE_ARMED && gone && now >= guard.term_at) {
		send(SIGTERM);
		send(SIGCONT); /* a stopped command hears TERM only when it goes on */
		guard.stage = STAGE_TERMED;
	}
	if ((guard.stage == STAGE_ARMED || guard.stage == STAGE_TERMED) && now >= guard.kill_at) {
		send(SIGKILL);
		guard.stage = STAGE_KILLED;
	}
	return guard.stage == STAGE_KILLED;
}
