#include <config.h>

#include "locksmith/common/guard.h"

#include "locksmith/common/clock.h"
#include "locksmith/common/holders.h"
#include "pidfd.h"
#include "procfs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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
	enum stage stage;
	int64_t term_at;
	int64_t step_in_at; /* semlock has done it by then, unless it is stopped */
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

/* Stopped, it neither tells the command to end nor hears us. */
static bool core_stopped(void)
{
	char path[40], text[512] = "";
	struct procfs_stat stat;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)guard.core);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return procfs_stat(text, &stat) && (stat.state == 'T' || stat.state == 't');
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
	guard.step_in_at = deadline - lease * 3 / 10;
	guard.kill_at = deadline - lease / 20;
	if (guard.stage != STAGE_KILLED)
		guard.stage = STAGE_ARMED;
}

void guard_lost(void)
{
	int64_t now = clock_now();

	guard.term_at = now;
	guard.step_in_at = now + NS_PER_S / 10;
	if (guard.stage == STAGE_IDLE)
		guard.kill_at = now;
	guard.kill_at = clock_min(guard.kill_at, now + NS_PER_S);
	if (guard.stage == STAGE_IDLE)
		guard.stage = STAGE_ARMED;
}

void guard_over(void)
{
	guard.stage = STAGE_IDLE;
}

int64_t guard_next(void)
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

static void signal_holders(int sig)
{
	/* Who has named no command may have the pipe open for other reasons. */
	if (guard_core_gone() || guard.child > 0)
		holders_signal(STDIN_FILENO, sig, guard.core_gone ? 0 : guard.core);
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

bool guard_act(void)
{
	int64_t now = clock_now();
	bool gone = guard_core_gone();

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
