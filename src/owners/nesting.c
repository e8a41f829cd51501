#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/attempt.h"
#include "sys/open_fds.h"
#include "methods/server/held_pipe.h"
#include "owners/owners_look.h"
#include "owners/nesting.h"

/* Does the environment say that an ancestor may hold LOCK? */
static bool in_environment(const struct lock *lock)
{
	const char *held = getenv("SEMLOCK_HELD");
	struct stat file;
	char entry[64];

	if ((lock->spec->method->can & LEAVES_RECORD) != 0)
		return getenv("SEMLOCK_LOCK") != NULL; /* the record says the rest */
	if (held == NULL)
		return false;
	if ((lock->spec->name != NULL ? stat(lock->spec->name, &file) : fstat(lock->fd, &file)) != 0)
		return false;
	snprintf(entry, sizeof entry, "%llx:%llx:", (unsigned long long)file.st_dev,
	    (unsigned long long)file.st_ino);
	return strstr(held, entry) != NULL; /* or a longer number ends so: the search of the processes says the rest */
}

static bool is_this_or_ancestor(pid_t pid)
{
	return pid > 0 && (pid == getpid() || process_descends(getpid(), pid));
}

/* The ancestor through which HOLDER has the lock, or 0.  If HOLDER's processes cannot be seen, it is the
 * process that took the lock. */
static pid_t holding_ancestor(const struct owner *holder)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (is_this_or_ancestor(holder->members[i].pid))
			return holder->members[i].pid;
	return holder->nmembers == 0 && is_this_or_ancestor(holder->taker) ? holder->taker : 0;
}

/* Is LOCK's descriptor one that HOLDER has too?  To lock that again does not wait. */
static bool is_this_descriptor(const struct lock *lock, const struct owner *holder)
{
	if (lock->spec->name != NULL)
		return false;
	for (size_t i = 0; i < holder->nmembers; i++)
		if (open_fds_same_description(holder->members[i].pid, holder->members[i].fd, getpid(),
			lock->fd) == 1)
			return true;
	return false;
}

/* The part of LOCK's bytes that HOLDER has.  A lock without a range is all bytes; one of another kind, or a
 * slot beyond those of LOCK, has none of them. */
enum share { NO_BYTE, SOME_BYTES, ALL_BYTES };

static enum share share_of(const struct lock *lock, const struct owner *holder)
{
	struct bytes bytes = attempt_bytes(lock);

	if ((holder->kind & owners_kinds(lock)) == 0 && holder->kind != 0)
		return NO_BYTE;
	if ((lock->spec->method->can & CAN_RANGE) == 0)
		return holder->mode == MODE_SLOT && lock->spec->slots > 0 &&
			       holder->slot >= (int)lock->spec->slots ? NO_BYTE : ALL_BYTES;
	if (!attempt_overlaps(lock, holder->first, holder->last))
		return NO_BYTE;
	return holder->first <= bytes.first && holder->last >= bytes.last ? ALL_BYTES : SOME_BYTES;
}

/* A slot of flock is a byte as well: do a lock on bytes and a slot of flock conflict there? */
static bool conflicts_at_slot(const struct lock *lock, const struct owner *holder)
{
	bool ranged = (lock->spec->method->can & CAN_RANGE) != 0;
	long long slot = FLOCK_FIRST_SLOT + (ranged ? holder->slot : 0);
	struct bytes bytes = ranged ? attempt_bytes(lock) : (struct bytes){holder->first, holder->last};

	if (ranged ? holder->kind != KIND_FLOCK || holder->mode != MODE_SLOT
		  : lock->spec->slots == 0 || holder->kind == KIND_FLOCK)
		return false;
	return bytes.first <= slot && bytes.last >= slot;
}

static enum nesting compare_locks(const struct lock *lock, const struct owner *holder)
{
	enum share share = share_of(lock, holder);

	if (share == NO_BYTE)
		return conflicts_at_slot(lock, holder) ? NESTING_LESS : NESTING_SHARES;
	if (share == SOME_BYTES && lock->spec->slots == 0 && (holder->mode != MODE_SHARED || lock->spec->mode != SHARED))
		return NESTING_LESS;
	if (holder->mode == MODE_SLOT && lock->spec->slots == 0 && lock->spec->mode == EXCLUSIVE)
		return NESTING_LESS;
	if (holder->mode != MODE_SHARED)
		return NESTING_COVERS;
	if (lock->spec->slots > 0) /* the holder of a flock slot shares the lock itself */
		return (lock->spec->method->can & CAN_RANGE) != 0 ? NESTING_LESS : NESTING_SHARES;
	return lock->spec->mode == SHARED ? NESTING_SHARES : NESTING_LESS;
}

/* On a server, a slot and the whole lock are the same kind of lock.  HELD: the mode in SEMLOCK_HELD. */
static enum nesting compare_on_server(const struct lock *lock, const char *held)
{
	if (strcmp(held, "exclusive") == 0)
		return NESTING_COVERS;
	if (strcmp(held, "slot") == 0)
		return lock->spec->slots > 0 ? NESTING_COVERS : NESTING_LESS;
	/* A server that serves in order has a reader wait behind a waiting writer. */
	return lock->spec->mode == SHARED ? NESTING_QUEUES : NESTING_LESS;
}

/* SEMLOCK_HELD names the pipe of a helper; the helper's arguments name the lock. */
static enum nesting look_on_server(const struct lock *lock, pid_t *holder)
{
	const char *held = getenv("SEMLOCK_HELD");
	unsigned long long device, inode;
	struct procfs_stat still;
	char mode[16];

	for (; held != NULL; held = strchr(held + 1, ' ')) {
		if (sscanf(held, "%llx:%llx:%15[a-z]", &device, &inode, mode) != 3)
			continue;
		*holder = held_pipe_ancestor(lock->spec->name,
		    &(struct identity){(dev_t)device, (ino_t)inode});
		if (*holder > 0 && process_stat(*holder, &still))
			return compare_on_server(lock, mode);
	}
	return NESTING_NONE;
}

/* The kinds of kernel lock to search for: all, for they share the file's one queue. */
static unsigned kernel_kinds(const struct lock *lock)
{
	return (lock->spec->method->can & FREED_BY_KERNEL) == 0 ? 0 : KIND_FLOCK | KIND_OFD | KIND_POSIX;
}

enum nesting nesting_look(const struct lock *lock, pid_t *holder)
{
	enum nesting nesting = NESTING_NONE;
	struct owners found;
	struct procfs_stat still;
	struct error ignored;
	pid_t above;

	if ((lock->spec->method->can & HAS_LEASE) != 0)
		return look_on_server(lock, holder);
	if (!in_environment(lock) || owners_look(&found, lock, kernel_kinds(lock), &ignored) != 0)
		return NESTING_NONE;
	for (size_t i = 0; i < found.holders && nesting <= NESTING_SHARES; i++) {
		above = holding_ancestor(&found.list[i]);
		if (is_this_descriptor(lock, &found.list[i]) || found.list[i].verdict != ALIVE ||
		    found.list[i].doubt != DOUBT_NONE)
			break;
		if (above > 0 && process_stat(above, &still)) {
			nesting = compare_locks(lock, &found.list[i]);
			*holder = above;
		}
	}
	owners_forget(&found);
	return nesting;
}

/* Has this process a locked descriptor of LOCK's file?  Cheaper than a search of all processes. */
static bool has_locked_descriptor(const struct lock *lock)
{
	struct identity file = {lock->id.device, lock->id.inode};
	struct open_fds open_fds = {.files = &file, .nfiles = 1};
	bool found = false;

	open_fds_of(&open_fds, getpid());
	for (size_t i = 0; i < open_fds.count; i++)
		found = found || (open_fds.list[i].locked && open_fds.list[i].fd != lock->fd);
	open_fds_forget(&open_fds);
	return found;
}

/* The descriptor of this process through which HOLDER has the lock, and that is surely not LOCK's own; or -1. */
static int own_descriptor(const struct lock *lock, const struct owner *holder)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid == getpid() && holder->members[i].fd != lock->fd &&
		    (lock->spec->name != NULL ||
			open_fds_same_description(getpid(), holder->members[i].fd, getpid(), lock->fd) == 0))
			return holder->members[i].fd;
	return -1;
}

enum nesting nesting_inherited(const struct lock *lock, int *fd)
{
	enum nesting nesting = NESTING_NONE;
	struct owners found;
	struct error ignored;
	int own;

	if (kernel_kinds(lock) == 0 || !has_locked_descriptor(lock) ||
	    owners_look(&found, lock, kernel_kinds(lock), &ignored) != 0)
		return NESTING_NONE;
	for (size_t i = 0; i < found.holders && nesting <= NESTING_SHARES; i++) {
		own = own_descriptor(lock, &found.list[i]);
		if (own < 0)
			continue;
		*fd = own;
		/* Another slot may come free. */
		nesting = lock->spec->slots > 0 && found.list[i].mode == MODE_SLOT ? NESTING_SHARES
									      : compare_locks(lock, &found.list[i]);
	}
	owners_forget(&found);
	return nesting;
}
