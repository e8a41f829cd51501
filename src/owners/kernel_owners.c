/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "methods/kernel/lockfile.h"
#include "owners/sources.h"
#include "sys/file_system.h"
#include "sys/files.h"

/* The holders of one lock, while they are being found. */
struct holders {
	struct owners *found;
	struct procfs_lock *locks; /* the lock of each owner in FOUND */
	struct snapshot *snapshot;
	unsigned kinds;
};

/* Is the lock in OPEN_FD the lock OWNED, which OWNER holds?  It is if both are on the same open
 * file description or, for a posix lock, in the same process. */
static bool is_same_hold(const struct owner *owner, const struct procfs_lock *owned,
    const struct open_fd *open_fd)
{
	const struct procfs_lock *seen = &open_fd->lock;
	const struct member *member = &owner->members[0];
	int same;

	if (!procfs_same_lock(owned, seen))
		return false;
	if (seen->kind == KIND_POSIX)
		return member->pid == open_fd->pid;
	same = open_fds_same_description(member->pid, member->fd, open_fd->pid, open_fd->fd);
	return same < 0 ? seen->exclusive || seen->pid > 0 : same == 1;
}

/* Fill FOUND from the descriptors.  All processes that share a lock are one holder. */
static void add_seen(struct holders *holders)
{
	const struct open_fds *open_fds = &holders->snapshot->open_fds;
	struct owners *found = holders->found;
	const struct open_fd *open_fd;
	struct owner *owner;
	size_t j;

	owners_forget(found);
	free(holders->locks);
	holders->locks = calloc(open_fds->count + 1, sizeof *holders->locks);
	found->seen = holders->locks == NULL ? SEEN_FAILED : SEEN_ALL;
	if (open_fds->seen >= SEEN_CUT)
		seen_lessened(&found->seen, open_fds->seen);
	for (size_t i = 0; holders->locks != NULL && i < open_fds->count; i++) {
		open_fd = &open_fds->list[i];
		if (!open_fd->locked || !owners_count_lock(&open_fd->lock, holders->kinds))
			continue;
		for (j = 0; j < found->count; j++)
			if (is_same_hold(&found->list[j], &holders->locks[j], open_fd))
				break;
		if (j == found->count) {
			owner = owners_add(found);
			if (owner == NULL)
				break;
			owner_describe(owner, &open_fd->lock);
			owner->taker = open_fd->lock.pid > 0 ? (pid_t)open_fd->lock.pid : 0;
			holders->locks[j] = open_fd->lock;
		}
		owners_join(found, &found->list[j], open_fd->pid, open_fd->fd);
	}
}

static void drop_seen(struct holders *holders, size_t i)
{
	memmove(&holders->locks[i], &holders->locks[i + 1],
	    (holders->found->count - i - 1) * sizeof *holders->locks);
	owners_drop(holders->found, i);
}

/* Do the locks A and B conflict, so that two processes cannot hold both at once? */
static bool exclude_each_other(const struct procfs_lock *a, const struct procfs_lock *b)
{
	return (a->exclusive || b->exclusive) &&
	       (a->kind == KIND_FLOCK) == (b->kind == KIND_FLOCK) && a->first <= b->last &&
	       b->first <= a->last;
}

/* May a lock have been passed on during the walk?  A walk over the processes takes time: such a
 * lock is seen twice, or not at all.  (A file with more than MOST_LOCKS locks is a database: few of
 * its locks can be in doubt, and they are not compared.) */
static bool may_have_been_passed_on(const struct holders *holders)
{
	enum { MOST_LOCKS = 64 };
	const size_t count = holders->found->count;
	const struct open_fds *open_fds = &holders->snapshot->open_fds;

	for (size_t i = 0; count == 0 && i < open_fds->count; i++)
		if (open_fds->list[i].pid != getpid())
			return true;
	for (size_t i = 0; count <= MOST_LOCKS && i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (exclude_each_other(&holders->locks[i], &holders->locks[j]))
				return true;
	return false;
}

/* Set ROOT to the process that took the lock, if it is alive and still has the lock: /proc/locks
 * names the same process.  Else set ROOT to the member whose parent is no member; if a command has
 * left several such processes behind, to the oldest one. */
static void find_root(struct owner *owner, struct process *root)
{
	struct process process;

	root->pid = 0;
	if (owner_has(owner, owner->taker) && process_read(owner->taker, root))
		return;
	root->pid = 0;
	for (size_t i = 0; i < owner->nmembers; i++)
		if (process_read(owner->members[i].pid, &process) &&
		    !owner_has(owner, process.parent) &&
		    (root->pid == 0 || process.started < root->started))
			*root = process;
}

static pid_t find_command(const struct owner *owner, const struct process *supervisor)
{
	unsigned long long oldest = ULLONG_MAX;
	struct procfs_stat seen;
	pid_t command = 0;

	for (size_t i = 0; i < owner->nmembers; i++)
		if (process_stat(owner->members[i].pid, &seen) && seen.parent == supervisor->pid &&
		    seen.started < oldest) {
			command = owner->members[i].pid;
			oldest = seen.started;
		}
	return command != 0 ? command : process_youngest_child(supervisor->pid);
}

/* Name OWNER's process, and set its start as SINCE.  A command starts when the lock is taken: then
 * SINCE is exact.  A process that locked a descriptor of its own started earlier. */
static void name_holder(struct owner *owner)
{
	struct process root, command;
	pid_t pid;

	find_root(owner, &root);
	if (root.pid == 0)
		return; /* all members have ended since */
	owner->process = root;
	if (name_is_semlock(root.name) || name_is_flock(root.name)) {
		pid = find_command(owner, &root);
		if (pid != 0 && process_read(pid, &command) && command.parent == root.pid) {
			owner->process = command;
			owner->supervisor = root.pid;
			owner->since_exact = true;
		}
	}
	owner->since = process_start(owner->process.started);
}

/* ---- locks that no descriptor shows ---- */

/* Mark the lines of /proc/locks whose holder was seen.  Returns the number of other locks that are
 * held. */
static size_t account(const struct holders *holders)
{
	const struct snapshot *snapshot = holders->snapshot;
	struct listed_lock *entry;
	size_t unseen = 0;

	for (size_t i = 0; i < snapshot->nlisted; i++)
		snapshot->listed[i].accounted = false;
	for (size_t i = 0; i < holders->found->count; i++) {
		entry = snapshot_line(snapshot, &holders->locks[i]);
		if (entry != NULL)
			entry->accounted = true;
	}
	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		unseen += !entry->lock.waiting && !entry->accounted &&
		          owners_count_lock(&entry->lock, holders->kinds);
	}
	return unseen;
}

/* Add the locks that only /proc/locks shows.  The process in a posix lock's line holds the lock,
 * and is alive.  The taker of another kind of lock may have ended, and another process may have
 * reused its PID. */
static void add_unseen(struct owners *found, const struct snapshot *snapshot, unsigned kinds)
{
	struct owner *owner;
	struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (entry->lock.waiting || entry->accounted ||
		    !owners_count_lock(&entry->lock, kinds))
			continue;
		owner = owners_add(found);
		if (owner == NULL)
			return;
		owner_describe(owner, &entry->lock);
		owner->taker = entry->lock.pid > 0 ? (pid_t)entry->lock.pid : 0;
		if (entry->lock.kind == KIND_POSIX && owner->taker > 0) {
			owners_join(found, owner, owner->taker, -1);
			name_holder(owner);
		}
		if (owner->process.pid == 0)
			seen_lessened(&found->seen, SEEN_NOT_ALL);
	}
}

/* An unseen slot of a flock is two lines, the shared flock and the byte, and nothing connects them:
 * drop as many shared flocks as there are slots. */
static void unite_unseen_slots(struct owners *found)
{
	size_t slots = 0;

	for (size_t i = 0; i < found->count; i++)
		slots += found->list[i].mode == MODE_SLOT && found->list[i].nmembers == 0;
	for (size_t i = found->count; i > 0 && slots > 0; i--)
		if (found->list[i - 1].nmembers == 0 && found->list[i - 1].kind == KIND_FLOCK &&
		    found->list[i - 1].mode == MODE_SHARED) {
			owners_drop(found, i - 1);
			slots--;
		}
}

static bool have_ended(const struct owner *owner)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (kill(owner->members[i].pid, 0) == 0 || errno != ESRCH)
			return false;
	return true;
}

/* Name the holders, and drop those whose processes have ended during the search.  A process that
 * could not be read for lack of a free descriptor has not ended. */
static void name_holders(struct holders *holders)
{
	struct owner *owner;

	for (size_t i = holders->found->count; i > 0; i--) {
		owner = &holders->found->list[i - 1];
		name_holder(owner);
		if (owner->nmembers > 0 && owner->process.pid == 0 && have_ended(owner))
			drop_seen(holders, i - 1);
	}
}

/* Is there a single holder, whose lock is exclusive and covers all bytes?  Then no waiter can hold
 * a part of the lock. */
static bool has_only_holder(const struct holders *holders)
{
	const struct procfs_lock *lock = holders->locks;

	return holders->found->count == 1 && lock->exclusive && lock->first == 0 &&
	       lock->last == LLONG_MAX;
}

static void find_seen(struct holders *holders)
{
	enum { MOST_TRIES = 3 };

	add_seen(holders);
	if (!has_only_holder(holders) && snapshot_add_waiters(holders->snapshot))
		add_seen(holders);
	for (int tries = 0; tries < MOST_TRIES && may_have_been_passed_on(holders); tries++) {
		open_fds_refresh(&holders->snapshot->open_fds);
		add_seen(holders);
	}
	name_holders(holders);
}

/* Is more than one record lock held?  Then a process that holds one can wait for another through
 * the same descriptor, which only /proc/locks shows. */
static bool has_several_record_locks(const struct owners *found)
{
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++)
		count += found->list[i].kind != KIND_FLOCK;
	return count > 1;
}

static bool needs_list(const struct holders *holders, enum list_use use)
{
	const struct snapshot *snapshot = holders->snapshot;

	if (snapshot->file.inode == 0 || use == LIST_NEVER)
		return false;
	if (holders->found->count == 0)
		return true;
	return use == LIST_FOR_ALL &&
	       (snapshot->open_fds.seen > SEEN_ALL || snapshot_has_idler(snapshot) ||
		   has_several_record_locks(holders->found));
}

/* Look into the processes that took the unseen locks: the lock may have been passed on to them
 * since the walk. */
static void look_into_takers(struct holders *holders)
{
	struct snapshot *snapshot = holders->snapshot;
	const struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (!entry->lock.waiting && !entry->accounted && entry->lock.pid > 0)
			open_fds_of(&snapshot->open_fds, (pid_t)entry->lock.pid);
	}
	find_seen(holders);
}

/* Read /proc/locks, and add what only it shows.  If this process may look into all others, a listed
 * lock that was not seen has been passed on, and its taker has ended or is not named: search all
 * processes again. */
static enum searched add_listed(struct holders *holders, struct search *search, struct error *error)
{
	struct snapshot *snapshot = holders->snapshot;
	struct look_progress *progress = &search->terms->progress;
	const bool blind = snapshot->open_fds.seen > SEEN_ALL;
	const bool none = holders->found->count == 0;
	bool missed;

	if (search->in_pieces && !progress->paused) {
		progress->paused = true;
		return SEARCHED_PIECE;
	}
	if (snapshot_list(snapshot, search, none && blind, error) != 0) {
		seen_lessened(&holders->found->seen, SEEN_NOT_ALL);
		return none ? SEARCHED_FAILED : SEARCHED_WHOLE;
	}
	if (account(holders) > 0)
		look_into_takers(holders);
	missed = account(holders) > 0 && !blind && progress->tries == 0;
	if (snapshot->list_state == LIST_FRESH || blind)
		add_unseen(holders->found, snapshot, holders->kinds);
	unite_unseen_slots(holders->found);
	return missed ? SEARCHED_MISSED : SEARCHED_WHOLE;
}

enum searched kernel_owners_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search, struct error *error)
{
	struct holders holders = {.found = found, .snapshot = snapshot, .kinds = kinds};
	enum searched look = SEARCHED_WHOLE;

	find_seen(&holders);
	if (found->seen < SEEN_FAILED && needs_list(&holders, search->terms->list_use))
		look = add_listed(&holders, search, error);
	found->holders = found->count;
	free(holders.locks);
	return look;
}

bool kernel_owner_outside(const char *path, unsigned kinds)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat file;
	bool locked = false;
	int fd = -1;

	if (!process_sees_all() && stat(path, &file) == 0 &&
	    (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if ((kinds & KIND_FLOCK) != 0)
		locked = call_try_flock(fd) != 0 && errno == EWOULDBLOCK;
	if (!locked && (kinds & (KIND_OFD | KIND_POSIX)) != 0)
		locked = fcntl(fd, F_OFD_GETLK, &bytes) == 0 && bytes.l_type != F_UNLCK;
	close(fd);
	return locked;
}

/* ---- kernel_source ---- */

/* Is HOLDER only half of a slot?  The slot of a flock is two locks through one descriptor, the
 * shared flock and a byte.  The first waiter for a slot has the shared flock already. */
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

/* Open LOCK's file, if it is a regular one on NFS; else -1: opening a device or a FIFO could have
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

/* No process here holds LOCK: on NFS, a process on another machine may. */
static void add_elsewhere(struct owners *found, const struct lock *lock)
{
	struct lock asked = *lock;
	struct owner *owner = NULL;

	if (found->count > 0)
		return;
	asked.slot = -1;
	if (asked.fd < 0)
		asked.fd = open_on_nfs(lock);
	if (asked.fd >= 0 && lockfile_identify(&asked) == 0 && !lock->spec->method->owned(&asked))
		owner = owners_add(found);
	if (owner != NULL) {
		owner->method = lock->spec->method->name;
		owner->kind = owners_kinds(lock);
		owner->last = LLONG_MAX; /* which bytes is not known: no part of LOCK is left out */
		owner->doubt = DOUBT_MACHINE;
		found->holders = 1;
	}
	if (asked.fd >= 0 && asked.fd != lock->fd)
		close(asked.fd);
}

static enum searched kernel_add(struct owners *found, const struct lock *lock,
    struct search *search, struct error *error)
{
	const unsigned kinds =
	    search->terms->kinds != 0 ? search->terms->kinds : owners_kinds(lock);
	struct snapshot snapshot;
	enum searched look = SEARCHED_FAILED;

	if (snapshot_take(&snapshot, lock, search, error) == 0)
		look = kernel_owners_add(found, &snapshot, kinds, search, error);
	if (look < SEARCHED_PIECE) {
		add_elsewhere(found, lock);
		waiters_add(found, &snapshot, kinds, search);
		for (size_t i = found->holders; i > 0; i--)
			if (is_half_of_slot(found, &found->list[i - 1]))
				owners_drop(found, i - 1);
	}
	snapshot_forget(&snapshot);
	return look;
}

static bool kernel_verify(const struct lock *lock, pid_t pid, struct fd_walk *walk)
{
	struct identity file = lock->id.file;
	struct open_fds open_fds = {.files = &file, .nfiles = 1};
	struct owner holder = {0};
	bool verified = false;

	(void)walk; /* only PID is looked into */
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

const struct source kernel_source = {kernel_add, kernel_verify, kernel_nesting};
