/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/kernel/kernel_methods.h"
#include "methods/server/server.h"
#include "owners/owners_look.h"
#include "owners/probe.h"
#include "owners/sources.h"
#include "sys/file_system.h"

/* The slot of a flock is two locks, the shared flock and a byte, through one descriptor.  The first in the queue
 * for a slot has the shared flock already. */
static bool is_half_of_slot(struct owners *found, const struct owner *holder)
{
	struct owner *other;

	if (holder->mode != MODE_SHARED || holder->nmembers == 0)
		return false;
	for (size_t i = 0; i < found->count; i++) {
		other = &found->list[i];
		if (other->waits && holder->nmembers == 1 && other->process.pid == holder->members[0].pid)
			return true;
		if (other->mode == MODE_SLOT && other->nmembers > 0 && holder->kind == KIND_FLOCK &&
		    other->members[0].pid == holder->members[0].pid && other->members[0].fd == holder->members[0].fd) {
			other->taker = holder->taker;
			return true;
		}
	}
	return false;
}

static void unite_slots(struct owners *found)
{
	for (size_t i = found->holders; i > 0; i--)
		if (is_half_of_slot(found, &found->list[i - 1]))
			owners_drop(found, i - 1);
}

/* Open LOCK's file, if it is a regular one on NFS; else -1: to open a device or a FIFO could have an effect. */
static int open_on_nfs(const struct lock *lock)
{
	int path = open(lock->spec->name, O_PATH | O_CLOEXEC), fd = -1;
	struct stat file;

	if (path >= 0 && fstat(path, &file) == 0 && S_ISREG(file.st_mode) && file_system_nfs(path, file.st_dev))
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
		owner->slot = -1;
		owner->doubt = DOUBT_MACHINE;
		found->holders = 1;
	}
	if (look.fd >= 0 && look.fd != lock->fd)
		close(look.fd);
}

/* Returns 1; 0 if the look missed a lock that was passed on during it, not for want of permission; or -1 with
 * ERROR filled. */
static int add_kernel_owners(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error)
{
	struct proc_snapshot snapshot;
	bool steady;

	if (proc_snapshot_take(&snapshot, lock, error) != 0)
		return -1;
	kernel_owners_add(found, &snapshot, kinds);
	add_elsewhere(found, lock);
	waiters_add(found, &snapshot, kinds);
	unite_slots(found);
	steady = !found->unseen || snapshot.open_fds.blind;
	proc_snapshot_forget(&snapshot);
	return steady;
}

static int add_recorded_owners(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error)
{
	(void)kinds;
	return record_owners_add(found, lock, error);
}

/* The server is not asked. */
static int add_last_answer(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error)
{
	(void)kinds, (void)error;
	if (lock->server_text != NULL)
		server_owners_add(found, lock->spec->method->name, lock->server_text, false);
	return 1;
}

static bool verify_recorded(const struct lock *lock, pid_t pid);
static bool verify_listed(const struct lock *lock, pid_t pid);

/* Where the holders of a method's locks are listed. */
struct source {
	/* Add LOCK's owners to FOUND.  1; 0: look again; -1 with ERROR filled. */
	int (*add)(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error);
	/* Does PID hold it?  Never asked of a server. */
	bool (*verify)(const struct lock *lock, pid_t pid);
};

static const struct source *source_of(const struct lock *lock)
{
	static const struct source processes = {add_kernel_owners, verify_listed};
	static const struct source its_record = {add_recorded_owners, verify_recorded};
	static const struct source server = {add_last_answer, NULL};
	unsigned can = lock->spec->method->can;

	return (can & HAS_LEASE) != 0 ? &server : (can & LEAVES_RECORD) != 0 ? &its_record : &processes;
}

int owners_look(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error)
{
	int seen = 0;

	*found = (struct owners){0};
	for (int tries = 0; tries < 4 && seen == 0; tries++) {
		if (tries > 0)
			open_fds_drop_walk();
		owners_forget(found);
		seen = source_of(lock)->add(found, lock, kinds, error);
	}
	if (seen >= 0 && found->failed)
		seen = error_plain(error, ERROR_SYSTEM, "cannot list its holders: no memory");
	return seen < 0 ? -1 : 0;
}

/* A file with a bare PID in it, whose holder has the file under flock(2), is a lock of -m link. */
static bool is_link(const struct owners *found, const char *name)
{
	struct record record;

	return found->holders == 1 && probe_record(name, method_named("link"), &record) == RECORD_PID &&
	       probe_names(&found->list[0], &record);
}

/* Without -m, kernel locks of all kinds count, unless the lock's record tells its method. */
static int look_at_any(struct owners *found, struct lock_spec *spec, struct error *error)
{
	const struct lock lock = LOCK_OF(spec);
	const struct method *recorded = probe_method(spec->name);

	if (recorded == NULL) {
		if (owners_look(found, &lock, KIND_FLOCK | KIND_OFD | KIND_POSIX, error) != 0)
			return -1;
		if (!is_link(found, spec->name))
			return 0;
		owners_forget(found);
		recorded = method_named("link");
	}
	spec->method = recorded;
	return owners_look(found, &lock, 0, error);
}

/* No process that is seen here holds SPEC's kernel lock: one outside of this PID namespace may. */
static void add_outside(struct owners *found, const struct lock_spec *spec, unsigned kinds)
{
	struct owner *owner = NULL, outside;

	if ((spec->method->can & FREED_BY_KERNEL) != 0 && !owners_held(found) && spec->name != NULL &&
	    probe_locked_outside(spec->name, kinds))
		owner = owners_add(found);
	if (owner == NULL)
		return;
	owner->method = spec->method->name;
	owner->doubt = DOUBT_NAMESPACE;
	outside = *owner;
	memmove(found->list + 1, found->list, (found->count - 1) * sizeof *found->list); /* holders come first */
	found->list[0] = outside;
	found->holders++;
}

int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool method_named, struct error *error)
{
	const struct lock lock = LOCK_OF(spec);
	int result;

	if (server_method(spec->name) != NULL)
		spec->method = server_method(spec->name);
	if ((spec->method->can & HAS_LEASE) != 0)
		return server_owners_ask(found, &lock, error);
	result = method_named ? owners_look(found, &lock, owners_kinds(&lock), error) : look_at_any(found, spec, error);
	if (result == 0)
		add_outside(found, spec, method_named ? owners_kinds(&lock) : KIND_FLOCK | KIND_OFD | KIND_POSIX);
	return result;
}

static bool conflicts_with(const struct procfs_lock *held, const struct lock *lock)
{
	struct owner holder = {0};

	owner_describe(&holder, held);
	return owners_count_lock(held, owners_kinds(lock)) && owner_conflicts(&holder, lock);
}

static bool verify_recorded(const struct lock *lock, pid_t pid)
{
	struct owners found;
	struct error ignored;
	bool holds = owners_look(&found, lock, 0, &ignored) == 0 && found.holders > 0 &&
		     found.list[0].verdict == ALIVE && found.list[0].doubt == DOUBT_NONE &&
		     owner_has(&found.list[0], pid);

	owners_forget(&found);
	return holds && probe_verify(lock, pid);
}

static bool verify_listed(const struct lock *lock, pid_t pid)
{
	struct identity file = {lock->id.device, lock->id.inode};
	struct open_fds open_fds = {.files = &file, .nfiles = 1};
	bool verified = false;

	open_fds_of(&open_fds, pid);
	for (size_t i = 0; i < open_fds.count; i++)
		verified = verified ||
			 (open_fds.list[i].locked && conflicts_with(&open_fds.list[i].lock, lock));
	open_fds_forget(&open_fds);
	return verified;
}

bool owners_verify(const struct lock *lock, pid_t pid)
{
	return source_of(lock)->verify(lock, pid);
}
