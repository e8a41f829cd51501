/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "run/hold_owner.h"
#include "sys/files.h"
#include "sys/process.h"

int hold_owner_poll_time(const struct hold_owner *owner)
{
	return owner->pid > 0 && owner->end < 0 ? 1000 : -1;
}

bool hold_owner_ended(const struct hold_owner *owner)
{
	struct pollfd end = {owner->end, POLLIN, 0};
	struct procfs_stat stat;

	if (owner->pid == 0)
		return false;
	if (owner->end >= 0)
		return poll(&end, 1, 0) > 0;
	if (owner->started != 0)
		return !process_stat(owner->pid, &stat) || procfs_ended(stat.state) ||
		       stat.started != owner->started;
	return kill(owner->pid, 0) != 0 && errno == ESRCH;
}

int hold_owner_find(struct hold_owner *owner, pid_t pid, struct error *error)
{
	struct procfs_stat stat;

	*owner = (struct hold_owner){.pid = pid, .end = -1};
	if (pid == 0)
		return 0;
	owner->end = descriptor_above_standard(pidfd_of(pid));
	if (process_numbers_ours() && process_stat(pid, &stat))
		owner->started = stat.started;
	if (hold_owner_ended(owner) || (kill(pid, 0) != 0 && errno == ESRCH))
		return error_plain(error, ERROR_USAGE, "--hold=%ld: there is no such process",
		    (long)pid);
	return 0;
}
