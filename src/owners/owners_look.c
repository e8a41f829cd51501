/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/table.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/server/scheme.h"
#include "owners/sources.h"
#include "sys/file_system.h"

/* The slot of a flock is two locks, the shared flock and a byte, through one descriptor.  The first
 * in the queue for a slot has the shared flock already. */
static bool is_half_of_slot(struct owners *found, const struct owner *holder)
{
	struct owner *other;

	if (holder->mode != MODE_SHARED || holder->nmembers == 0)
		return false;
	for (size_t i = 0; i < found->count; i++) {
		other = &found->list[i];
		if (other->waits && holder->nmembers == 1 &&
		    other->process.pid == holder->members[0].pid)
			return true;
		if (other->mode == MODE_SLOT && other->nmembers > 0 && holder->kind == KIND_FLOCK &&
		    other->members[0].pid == holder->members[0].pid &&
		    other->members[0].fd == holder->members[0].fd) {
			other->taker = holder->taker;
			return true;
		}
	}
	return false;
}

/* Open LOCK's file, if it is a regular one on NFS; else -1: to open a device or a FIFO could have
 * an effect. */
static int open_on_nfs(const struct lock *lock)
{
	int path = open(lock->spec->name, O_PATH | O_CLOEXEC), fd = -1;
	struct stat file;

	if (path >= 0 && fstat(path, &file) == 0 && S_ISREG(file.st_mode) && file_system_nfs(path))
		fd = open(lock->spec->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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
	if (look.fd >= 0 && lockfile_identify(&look) == 0 && !lock->spec->method->owned(&look))
		owner = owners_add(found);
	if (owner != NULL) {
		owner->method = lock->spec->method->name;
		owner->kind = owners_kinds(lock);
		owner->doubt = DOUBT_MACHINE;
		found->holders = 1;
	}
	if (look.fd >= 0 && look.fd != lock->fd)
		close(look.fd);
}

/* Returns 1; 0 if the search missed a lock that was passed on during it, not for want of
 * permission; or -1 with ERROR filled. */
static int add_kernel_owners(struct owners *found, const struct lock *lock, unsigned kinds,
    struct error *error)
{
	struct snapshot snapshot;
	bool steady;

	if (snapshot_take(&snapshot, lock, error) != 0)
		return -1;
	kernel_owners_add(found, &snapshot, kinds);
	add_elsewhere(found, lock);
	waiters_add(found, &snapshot, kinds);
	for (size_t i = found->holders; i > 0; i--)
		if (is_half_of_slot(found, &found->list[i - 1]))
			owners_drop(found, i - 1);
	steady = !found->unseen || snapshot.open_fds.blind;
	snapshot_forget(&snapshot);
	return steady;
}

/* Returns as record_owners_add(). */
static int look_once(struct owners *found, const struct lock *lock, unsigned kinds,
    struct error *error)
{
	const enum family family = lock->spec->method->family;

	if (family == OF_FILES)
		return record_owners_add(found, lock, error);
	if (family == OF_KERNEL)
		return add_kernel_owners(found, lock, kinds, error);
	if (lock->server.text != NULL)
		server_owners_add(found, lock->spec->method->name, lock->server.text, false);
	return 1;
}

int owners_look(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error)
{
	int seen = 0;

	*found = (struct owners){0};
	for (int tries = 0; tries < 4 && seen == 0; tries++) {
		if (tries > 0)
			open_fds_drop_walk();
		owners_forget(found);
		seen = look_once(found, lock, kinds, error);
	}
	if (seen >= 0 && found->failed)
		seen = error_plain(error, ERROR_SYSTEM, "cannot list its holders: no memory");
	return seen < 0 ? -1 : 0;
}

/* No process that is seen here holds the kernel lock: one outside of this PID namespace does. */
static void add_outside(struct owners *found, const struct method *method)
{
	struct owner *owner = owners_add(found), outside;

	if (owner == NULL)
		return;
	owner->method = method->name;
	owner->doubt = DOUBT_NAMESPACE;
	outside = *owner;
	/* holders come first */
	memmove(found->list + 1, found->list, (found->count - 1) * sizeof *found->list);
	found->list[0] = outside;
	found->holders++;
}

/* Without -m, kernel locks of all kinds count, unless the lock's record tells its method. */
int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool this_method,
    struct error *error)
{
	const struct lock lock = LOCK_OF(spec);
	const struct method *recorded;
	unsigned kinds;

	*found = (struct owners){0};
	if (server_method(spec->name) != NULL)
		spec->method = server_method(spec->name);
	if (spec->method->family == ON_SERVER)
		return server_owners_ask(found, &lock, error);
	kinds = this_method ? owners_kinds(&lock) : KIND_FLOCK | KIND_OFD | KIND_POSIX;
	recorded = this_method ? NULL : record_method(spec->name);
	if (recorded == NULL && owners_look(found, &lock, kinds, error) != 0)
		return -1;
	if (!this_method && found->holders == 1 && record_is_link(spec->name, &found->list[0]))
		recorded = method_named("link");
	if (recorded != NULL) {
		owners_forget(found);
		spec->method = recorded;
		if (owners_look(found, &lock, 0, error) != 0)
			return -1;
	}
	if (spec->method->family == OF_KERNEL && !owners_held(found) && spec->name != NULL &&
	    kernel_owner_outside(spec->name, kinds))
		add_outside(found, spec->method);
	return 0;
}

static bool verify_recorded(const struct lock *lock, pid_t pid)
{
	struct owners found;
	struct error ignored;
	bool holds = owners_look(&found, lock, 0, &ignored) == 0 && found.holders > 0 &&
	             found.list[0].verdict == ALIVE && found.list[0].doubt == DOUBT_NONE &&
	             owner_has(&found.list[0], pid);

	owners_forget(&found);
	return holds && record_owner_holds(lock, pid);
}

static bool verify_listed(const struct lock *lock, pid_t pid)
{
	struct identity file = {lock->id.device, lock->id.inode};
	struct open_fds open_fds = {.files = &file, .nfiles = 1};
	struct owner holder = {0};
	bool verified = false;

	open_fds_of(&open_fds, pid);
	for (size_t i = 0; i < open_fds.count && !verified; i++)
		if (open_fds.list[i].locked) {
			owner_describe(&holder, &open_fds.list[i].lock);
			verified = owners_count_lock(&open_fds.list[i].lock, owners_kinds(lock)) &&
			           owner_conflicts(&holder, lock);
		}
	open_fds_forget(&open_fds);
	return verified;
}

bool owners_verify(const struct lock *lock, pid_t pid)
{
	return lock->spec->method->family == OF_FILES ? verify_recorded(lock, pid)
	                                              : verify_listed(lock, pid);
}
