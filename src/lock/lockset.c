/* SPDX-License-Identifier: MIT */
/* Processes that all take their locks in one order cannot deadlock.  The order is that of the
 * files' devices and inodes, whatever stood first on the command line: only locks that come earlier
 * in it are held while waiting for a later one.  A file with two names is one lock, in the stronger
 * mode. */
#include <config.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lock/take.h"

/* Locks made of files have their directory's device and inode, and a name in it. */
static int by_file(const struct lock *a, const struct lock *b)
{
	if (a->id.device != b->id.device)
		return a->id.device < b->id.device ? -1 : 1;
	if (a->id.inode != b->id.inode)
		return a->id.inode < b->id.inode ? -1 : 1;
	if (a->id.entry == NULL || b->id.entry == NULL)
		return (a->id.entry == NULL) - (b->id.entry == NULL);
	return strcmp(a->id.entry, b->id.entry);
}

/* Of one file's locks the exclusive one comes first: it is the one to take. */
static int in_order(const void *left, const void *right)
{
	const struct lock *a = left, *b = right;
	int order = by_file(a, b);

	return order != 0 ? order : (a->spec->mode == SHARED) - (b->spec->mode == SHARED);
}

void lockset_release(struct lock *locks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		locks[i].spec->method->release(&locks[i]);
}

static enum outcome open_all(struct lock *locks, unsigned count, const struct wait_options *wait,
    const struct lock **culprit, struct error *error)
{
	enum outcome outcome = TAKEN;

	for (unsigned i = 0; i < count; i++)
		locks[i].fd = -1;
	for (unsigned i = 0; i < count && outcome == TAKEN; i++) {
		*culprit = &locks[i];
		outcome = lock_open_in_time(&locks[i], wait, error);
	}
	return outcome;
}

/* A lock that cannot be flocked may have become stale while we waited for the later ones, and been
 * taken over. */
static bool is_still_ours(struct lock *lock)
{
	return lock->spec->method->current(lock) && lock->spec->method->owned(lock);
}

static enum outcome take_once(struct lock *locks, unsigned count, const struct wait_options *wait,
    const struct lock **culprit, struct error *error)
{
	enum outcome outcome = open_all(locks, count, wait, culprit, error);

	if (outcome != TAKEN)
		return outcome;
	qsort(locks, count, sizeof *locks, in_order);
	/* The command that a record names is started once, at the first take: before that, all must
	 * be there that it is to inherit. */
	for (unsigned i = 0; i < count; i++) {
		*culprit = &locks[i];
		if (locks[i].spec->method->family == OF_FILES &&
		    locks[i].spec->method->prepare(&locks[i], error) != 0)
			return FAILED;
	}
	/* The lock on a file's first name covers its second: for the second name, check only that
	 * it still leads to that file. */
	for (unsigned i = 0; i < count && outcome == TAKEN; i++) {
		*culprit = &locks[i];
		locks[i].place.covered = i > 0 && by_file(&locks[i - 1], &locks[i]) == 0;
		if (!locks[i].place.covered)
			outcome = lock_take_open(&locks[i], wait, error);
		else if (!is_still_ours(&locks[i]))
			outcome = AGAIN;
	}
	/* A program that just deletes lock files may have replaced an earlier one meanwhile. */
	for (unsigned i = 0; i < count && outcome == TAKEN; i++)
		if (!is_still_ours(&locks[i]))
			outcome = AGAIN;
	return outcome;
}

enum outcome lockset_take(struct lock *locks, unsigned count, const struct wait_options *wait,
    const struct lock **culprit, struct error *error)
{
	enum outcome outcome;

	do {
		outcome = take_once(locks, count, wait, culprit, error);
		if (outcome != TAKEN)
			lockset_release(locks, count);
	} while (outcome == AGAIN);
	return outcome;
}
