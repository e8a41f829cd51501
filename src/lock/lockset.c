/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <sys/stat.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lock/lockset.h"

/* Compare the files of A and B, in the order in which locks are taken; 0: they are the same lock.
 * For a lock made of files, compare the directory's device and inode, and the name there. */
static int by_file(const struct lock *a, const struct lock *b)
{
	if (a->id.file.device != b->id.file.device)
		return a->id.file.device < b->id.file.device ? -1 : 1;
	if (a->id.file.inode != b->id.file.inode)
		return a->id.file.inode < b->id.file.inode ? -1 : 1;
	if (a->id.entry == NULL || b->id.entry == NULL)
		return (a->id.entry == NULL) - (b->id.entry == NULL);
	return strcmp(a->id.entry, b->id.entry);
}

/* Of two locks of one file, the exclusive one comes first, because it is taken, and covers the
 * other. */
static int in_order(const void *left, const void *right)
{
	const struct lock *a = *(struct lock *const *)left;
	const struct lock *b = *(struct lock *const *)right;
	int order = by_file(a, b);

	return order != 0 ? order : (a->spec->mode == SHARED) - (b->spec->mode == SHARED);
}

void lockset_sort(struct lock *locks, unsigned count, struct lock **order)
{
	for (unsigned i = 0; i < count; i++)
		order[i] = &locks[i];
	qsort(order, count, sizeof *order, in_order);
	for (unsigned i = 0; i < count; i++)
		order[i]->place.covered = i > 0 && by_file(order[i - 1], order[i]) == 0;
}

struct lock *lockset_prepare(struct lock *const *order, unsigned count, struct error *error)
{
	for (unsigned i = 0; i < count; i++) {
		const struct method *method = order[i]->spec->method;

		if (method->family == OF_FILES && method->prepare(order[i], error) != 0)
			return order[i];
	}
	return NULL;
}

bool lockset_still_ours(struct lock *lock)
{
	return lock->spec->method->current(lock) && lock->spec->method->owned(lock);
}

const struct lock *lockset_covering(const struct lock *locks, unsigned count)
{
	if (!locks[0].place.covered)
		return &locks[0];
	for (unsigned i = 1; i < count; i++)
		if (!locks[i].place.covered && by_file(&locks[i], &locks[0]) == 0)
			return &locks[i];
	return &locks[0];
}

void lockset_release(struct lock *locks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		locks[i].spec->method->release(&locks[i]);
}

bool posix_lock_is_on(int fd, const struct lock *locks, unsigned count)
{
	struct stat file;

	if (count == 0 || !lock_can(locks, OWNED_BY_PROCESS) || fstat(fd, &file) != 0)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (lock_is_on(&locks[i], &file))
			return true;
	return false;
}
