#include <config.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/lockfile.h"
#include "owners/owners_look.h"
#include "owners/sources.h"
#include "sys/file_system.h"

/* The first in the queue for a slot has the shared lock of all slots already, and no slot yet. */
static bool waits_for_slot(const struct owners *found, const struct owner *holder)
{
	if (holder->mode != MODE_SHARED || holder->nmembers != 1)
		return false;
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid == holder->members[0].pid)
			return true;
	return false;
}

static void drop_slot_waiters(struct owners *found)
{
	for (size_t i = found->holders; i > 0; i--)
		if (waits_for_slot(found, &found->list[i - 1]))
			owners_drop(found, i - 1);
}

/* Open LOCK's file, if it is a regular one on NFS; else -1: to open another could do something. */
static int open_on_nfs(const struct lock *lock)
{
	int path = open(lock->name, O_PATH | O_CLOEXEC), fd = -1;
	struct stat file;

	if (path >= 0 && fstat(path, &file) == 0 && S_ISREG(file.st_mode) && file_system_nfs(path, file.st_dev))
		fd = open(lock->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (path >= 0)
		close(path);
	return fd;
}

/* No process here holds LOCK: on NFS, one on another machine may. */
static void add_elsewhere(struct owners *found, const struct lock *lock)
{
	struct lock look = *lock;
	struct owner *owner = NULL;

	if (found->count > 0)
		return;
	look.slot = -1;
	if (look.fd < 0)
		look.fd = open_on_nfs(lock);
	if (look.fd >= 0 && lockfile_identify(&look) == 0 && !lock->method->owned(&look))
		owner = owners_add(found);
	if (owner != NULL) {
		owner->method = lock->method->name;
		owner->kind = owners_kinds(lock);
		owner->slot = -1;
		owner->doubt = DOUBT_HOST;
		found->holders = 1;
	}
	if (look.fd >= 0 && look.fd != lock->fd)
		close(look.fd);
}

int owners_look(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error)
{
	struct proc_snapshot snapshot;

	*found = (struct owners){0};
	if ((lock->method->can & ON_SERVER) != 0) {
		if (lock->server_text[0] != '\0')
			server_owners_add(found, lock->method->name, lock->server_text, false);
		return 0;
	}
	if ((lock->method->can & LEAVES_RECORD) != 0)
		return record_owners_look(found, lock, error);
	for (int tries = 0; tries < 4; tries++) {
		owners_forget(found);
		if (proc_snapshot_take(&snapshot, lock, error) != 0) {
			proc_snapshot_forget(&snapshot);
			return -1;
		}
		kernel_owners_add(found, &snapshot, kinds);
		add_elsewhere(found, lock);
		waiters_add(found, &snapshot, kinds);
		drop_slot_waiters(found);
		found->failed = found->failed || snapshot.open_fds.failed;
		/* The look missed a lock that was passed on during it: repeat it, unless it missed one
		 * for want of permission. */
		if (!found->unseen || snapshot.open_fds.blind)
			break;
		proc_snapshot_forget(&snapshot);
	}
	proc_snapshot_forget(&snapshot);
	return 0;
}

static bool conflicts_with(const struct procfs_lock *held, const struct lock *lock)
{
	struct owner holder = {0};

	owner_describe(&holder, held);
	return owners_count_lock(held, owners_kinds(lock)) && owner_conflicts(&holder, lock);
}

bool owners_verify(const struct lock *lock, pid_t pid)
{
	struct identity file = {lock->device, lock->inode};
	struct open_fds open_fds = {0};
	bool verified = false;

	if ((lock->method->can & LEAVES_RECORD) != 0)
		return record_owners_verify(lock, pid);
	open_fds_of(&open_fds, pid, &file, 1);
	for (size_t i = 0; i < open_fds.count; i++)
		verified = verified ||
			 (open_fds.list[i].locked && conflicts_with(&open_fds.list[i].lock, lock));
	open_fds_forget(&open_fds);
	return verified;
}
