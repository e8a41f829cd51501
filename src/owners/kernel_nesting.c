/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <sys/stat.h>
#include <unistd.h>

#include "owners/sources.h"

/* How many of LOCK's bytes does HOLDER hold?  A lock without a range covers all bytes.  A lock of
 * another kind, or a slot beyond those of LOCK, holds none of them. */
enum share { NO_BYTE, SOME_BYTES, ALL_BYTES };

static enum share share_of(const struct lock *lock, const struct owner *holder)
{
	struct bytes bytes = bytes_of(lock);

	if ((holder->kind & owners_kinds(lock)) == 0)
		return NO_BYTE;
	if (!lock_can(lock, CAN_RANGE))
		return holder->mode == MODE_SLOT && lock->spec->slots > 0 &&
		               holder->slot >= (int)lock->spec->slots
		           ? NO_BYTE
		           : ALL_BYTES;
	if (!lock_overlaps(lock, holder->first, holder->last))
		return NO_BYTE;
	return holder->first <= bytes.first && holder->last >= bytes.last ? ALL_BYTES : SOME_BYTES;
}

/* A slot of a flock is a record lock on one byte.  Is one of LOCK and HOLDER such a slot, and the
 * other a record lock on a range that includes its byte? */
static bool conflicts_at_slot(const struct lock *lock, const struct owner *holder)
{
	bool ranged = lock_can(lock, CAN_RANGE);
	long long slot = FLOCK_FIRST_SLOT + (ranged ? holder->slot : 0);
	struct bytes bytes = ranged ? bytes_of(lock) : (struct bytes){holder->first, holder->last};

	if (ranged ? holder->kind != KIND_FLOCK || holder->mode != MODE_SLOT
		   : lock->spec->slots == 0 || holder->kind == KIND_FLOCK)
		return false;
	return bytes.first <= slot && bytes.last >= slot;
}

static enum nesting compare_locks(const struct lock *lock, const struct owner *holder)
{
	enum share share = share_of(lock, holder);

	if (share == NO_BYTE)
		return conflicts_at_slot(lock, holder) ? NESTING_LESS : NESTING_BESIDE;
	if (lock->spec->slots > 1 && holder->mode != MODE_SHARED &&
	    (holder->mode == MODE_SLOT || share == SOME_BYTES))
		return NESTING_AGAIN;
	if (share == SOME_BYTES && lock->spec->slots == 0 &&
	    (holder->mode != MODE_SHARED || lock->spec->mode != SHARED))
		return NESTING_LESS;
	if (holder->mode == MODE_SLOT && lock->spec->slots == 0 && lock->spec->mode == EXCLUSIVE)
		return NESTING_LESS;
	if (holder->mode != MODE_SHARED)
		return NESTING_COVERS;
	if (lock->spec->slots > 0) /* a slot of a flock does not conflict with the shared flock */
		return lock_can(lock, CAN_RANGE) ? NESTING_LESS : NESTING_BESIDE;
	if (lock->spec->mode != SHARED)
		return NESTING_LESS;
	return share == ALL_BYTES ? NESTING_SHARED : NESTING_BESIDE;
}

/* Does FD, of this process, share LOCK's open file description?  To lock that description again
 * does not wait. */
static bool is_own(const struct lock *lock, int fd)
{
	return fd == lock->fd || (lock->spec->name == NULL && open_fds_same_description(getpid(),
								  fd, getpid(), lock->fd) != 0);
}

/* Mark in MINE the slots of LOCK that HELD includes. */
static void note_slots(const struct lock *lock, const struct procfs_lock *held, bool *mine)
{
	bool ranged = lock_can(lock, CAN_RANGE);
	long long first = ranged ? bytes_of(lock).first : FLOCK_FIRST_SLOT;

	for (unsigned slot = 0; slot < lock->spec->slots; slot++)
		mine[slot] =
		    mine[slot] || (held->first <= first + slot && held->last >= first + slot);
}

/* This process has inherited the slots in MINE.  Are they as many as LOCK takes (--take), and has
 * LOCK as many others left? */
static enum nesting nesting_of_slots(const struct lock *lock, const bool *mine)
{
	unsigned take = lock->spec->take > 1 ? lock->spec->take : 1, count = 0;

	for (unsigned slot = 0; slot < lock->spec->slots; slot++)
		count += mine[slot];
	if (lock->spec->slots - count < take)
		return count < take ? NESTING_LESS : NESTING_COVERS;
	return count < take ? NESTING_BESIDE : NESTING_AGAIN;
}

enum nesting kernel_nesting(const struct lock *lock, int *fd)
{
	struct identity file = lock->id.file;
	const int own[] = {lock->fd, -1};
	struct stat named;
	struct open_fds open_fds = {.files = &file, .nfiles = 1};
	enum nesting nesting = NESTING_NONE, one;
	bool mine[SLOTS_MOST] = {false};
	struct owner holder;

	/* LOCK is not open yet: identify its file by the name */
	if (file.inode == 0 && lock->spec->name != NULL && stat(lock->spec->name, &named) == 0)
		file = identity_of(&named);
	if (!open_fds_may_inherit(&file, own))
		return NESTING_NONE;
	open_fds_of(&open_fds, getpid());
	for (size_t i = 0; i < open_fds.count && nesting <= NESTING_AGAIN; i++) {
		/* The slot of a flock is two locks, the shared flock and a byte.  Both may be
		 * compared: the flock never gives a higher result than the byte. */
		if (!open_fds.list[i].locked || is_own(lock, open_fds.list[i].fd))
			continue;
		owner_describe(&holder, &open_fds.list[i].lock);
		one = compare_locks(lock, &holder);
		if (one == NESTING_AGAIN)
			note_slots(lock, &open_fds.list[i].lock, mine);
		if (one > nesting) {
			nesting = one;
			*fd = open_fds.list[i].fd;
		}
	}
	open_fds_forget(&open_fds);
	return nesting == NESTING_AGAIN ? nesting_of_slots(lock, mine) : nesting;
}
