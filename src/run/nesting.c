#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/open_fds.h"
#include "methods/server/held_pipe.h"
#include "owners/owners_look.h"
#include "run/nesting.h"

/* Is it in SEMLOCK_HELD?  Most often there is no such variable at all. */
static bool said_to_be_held(const struct lock *lock)
{
	const char *held = getenv("SEMLOCK_HELD");
	struct stat file;
	char entry[64];

	if ((lock->method->can & LEAVES_RECORD) != 0)
		return getenv("SEMLOCK_LOCK") != NULL; /* all else is in the record */
	if (held == NULL)
		return false;
	if ((lock->name != NULL ? stat(lock->name, &file) : fstat(lock->fd, &file)) != 0)
		return false;
	snprintf(entry, sizeof entry, "%llx:%llx:", (unsigned long long)file.st_dev,
	    (unsigned long long)file.st_ino);
	for (held = strstr(held, entry); held != NULL; held = strstr(held + 1, entry))
		if (held == getenv("SEMLOCK_HELD") || held[-1] == ' ')
			return true;
	return false;
}

static bool is_above(pid_t pid)
{
	return pid > 0 && (pid == getpid() || process_descends(getpid(), pid));
}

/* The ancestor through whom it is held, or 0.  Where we may not look into the ancestors, the
 * process that took it must be one. */
static pid_t ancestor(const struct owner *holder)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (is_above(holder->members[i].pid))
			return holder->members[i].pid;
	return holder->nmembers == 0 && is_above(holder->taker) ? holder->taker : 0;
}

/* The command has inherited the lock's own descriptor: to lock that once more is no wait. */
static bool is_this_descriptor(const struct lock *lock, const struct owner *holder)
{
	if (lock->name != NULL)
		return false;
	for (size_t i = 0; i < holder->nmembers; i++)
		if (open_fds_same_description(holder->members[i].pid, holder->members[i].fd, getpid(),
			lock->fd) == 1)
			return true;
	return false;
}

struct span {
	long long first, last;
};

static struct span wanted(const struct lock *lock)
{
	struct span span = {lock->range.start, LLONG_MAX};

	if (lock->slots > 0)
		span.last = span.first + (long long)lock->slots - 1;
	else if (lock->range.length > 0)
		span.last = span.first + lock->range.length - 1;
	return span;
}

/* Of the bytes that we want, how many has it?  (A lock that has no ranges is all of them; one of
 * another kind, or a slot beyond those we want, is none.) */
enum share { NO_BYTE, SOME, ALL };

static enum share share_of(const struct lock *lock, const struct owner *holder)
{
	struct span span = wanted(lock);

	if ((holder->kind & owners_kinds(lock)) == 0 && holder->kind != 0)
		return NO_BYTE;
	if ((lock->method->can & CAN_RANGE) == 0)
		return holder->mode == MODE_SLOT && lock->slots > 0 &&
			       holder->slot >= (int)lock->slots ? NO_BYTE : ALL;
	if (holder->last < span.first || holder->first > span.last)
		return NO_BYTE;
	return holder->first <= span.first && holder->last >= span.last ? ALL : SOME;
}

/* Two kinds meet all the same where one has, or is to have, all bytes, and the other a slot of
 * flock's, which is a byte too. */
static bool meets_slot(const struct lock *lock, const struct owner *holder)
{
	bool bytes = (lock->method->can & CAN_RANGE) != 0;
	long long slot = FLOCK_FIRST_SLOT + (bytes ? holder->slot : 0);
	struct span span = bytes ? wanted(lock) : (struct span){holder->first, holder->last};

	if (bytes ? holder->kind != KIND_FLOCK || holder->mode != MODE_SLOT
		  : lock->slots == 0 || holder->kind == KIND_FLOCK)
		return false;
	return span.first <= slot && span.last >= slot;
}

static enum nesting compare(const struct lock *lock, const struct owner *holder)
{
	enum share share = share_of(lock, holder);

	if (share == NO_BYTE)
		return meets_slot(lock, holder) ? NESTING_LESS : NESTING_SHARES;
	if (share == SOME && lock->slots == 0 && (holder->mode != MODE_SHARED || lock->mode != SHARED))
		return NESTING_LESS;
	if (holder->mode == MODE_SLOT && lock->slots == 0 && lock->mode == EXCLUSIVE)
		return NESTING_LESS;
	if (holder->mode != MODE_SHARED)
		return NESTING_COVERS;
	if (lock->slots > 0) /* of flock: a slot of another kind, which our ancestor does not keep */
		return (lock->method->can & CAN_RANGE) != 0 ? NESTING_LESS : NESTING_SHARES;
	return lock->mode == SHARED ? NESTING_SHARES : NESTING_LESS;
}

/* Slots of a lock on a server are no locks of another kind there. */
static enum nesting compare_on_server(const struct lock *lock, const char *held)
{
	if (strcmp(held, "exclusive") == 0)
		return NESTING_COVERS;
	if (strcmp(held, "slot") == 0)
		return lock->slots > 0 ? NESTING_COVERS : NESTING_LESS;
	/* The server may serve in order: a reader waits behind a writer that waits. */
	return lock->mode == SHARED ? NESTING_QUEUES : NESTING_LESS;
}

/* Which lock it is that SEMLOCK_HELD tells the pipe of, its helper says. */
static enum nesting look_on_server(const struct lock *lock, pid_t *holder)
{
	const char *held = getenv("SEMLOCK_HELD");
	unsigned long long device, inode;
	struct procfs_stat still;
	char mode[16];

	for (; held != NULL; held = strchr(held + 1, ' ')) {
		if (sscanf(held, "%llx:%llx:%15[a-z]", &device, &inode, mode) != 3)
			continue;
		*holder = held_pipe_ancestor(lock->name,
		    &(struct identity){(dev_t)device, (ino_t)inode});
		if (*holder > 0 && process_stat(*holder, &still))
			return compare_on_server(lock, mode);
	}
	return NESTING_NONE;
}

/* The kinds of kernel lock that a file may have: who waits for one of another kind waits in the
 * same queue. */
static unsigned kinds_of(const struct lock *lock)
{
	return (lock->method->can & LEAVES_RECORD) != 0 ? 0 : KIND_FLOCK | KIND_OFD | KIND_POSIX;
}

enum nesting nesting_look(const struct lock *lock, pid_t *holder)
{
	enum nesting nesting = NESTING_NONE;
	struct owners found;
	struct procfs_stat still;
	struct error ignored;
	pid_t above;

	if ((lock->method->can & ON_SERVER) != 0)
		return look_on_server(lock, holder);
	if (!said_to_be_held(lock) || owners_look(&found, lock, kinds_of(lock), &ignored) != 0)
		return NESTING_NONE;
	for (size_t i = 0; i < found.holders && nesting <= NESTING_SHARES; i++) {
		above = ancestor(&found.list[i]);
		if (is_this_descriptor(lock, &found.list[i]) || found.list[i].verdict != ALIVE ||
		    found.list[i].doubt != DOUBT_NONE)
			break;
		if (above > 0 && process_stat(above, &still)) {
			nesting = compare(lock, &found.list[i]);
			*holder = above;
		}
	}
	owners_forget(&found);
	return nesting;
}

/* Cheaper than to look through all processes, and most often there is none. */
static bool has_locked_it(const struct lock *lock)
{
	struct identity file = {lock->device, lock->inode};
	struct open_fds open_fds = {0};
	bool found = false;

	open_fds_of(&open_fds, getpid(), &file, 1);
	for (size_t i = 0; i < open_fds.count; i++)
		found = found || (open_fds.list[i].locked && open_fds.list[i].fd != lock->fd);
	open_fds_forget(&open_fds);
	return found;
}

/* The descriptor of ours that HOLDER is, and that certainly is not LOCK's own; or -1. */
static int own_descriptor(const struct lock *lock, const struct owner *holder)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid == getpid() && holder->members[i].fd != lock->fd &&
		    (lock->name != NULL ||
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

	if (kinds_of(lock) == 0 || (lock->method->can & ON_SERVER) != 0 || !has_locked_it(lock) ||
	    owners_look(&found, lock, kinds_of(lock), &ignored) != 0)
		return NESTING_NONE;
	for (size_t i = 0; i < found.holders && nesting <= NESTING_SHARES; i++) {
		own = own_descriptor(lock, &found.list[i]);
		if (own < 0)
			continue;
		*fd = own;
		/* Slots that others have come free. */
		nesting = lock->slots > 0 && found.list[i].mode == MODE_SLOT ? NESTING_SHARES
									      : compare(lock, &found.list[i]);
	}
	owners_forget(&found);
	return nesting;
}
