/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "lock/attempt.h"
#include "lock/held_mode.h"
#include "lock/slots.h"
#include "sys/crash_points.h"
#include "sys/file_system.h"
#include "sys/open_fds.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"

/* Does an attempt take LOCK itself?  Not where a slot is a byte of LOCK's range: then only that
 * byte is taken.  With other slots, their holders share LOCK itself, which keeps plain holders
 * out. */
#define TAKES_WHOLE(lock) ((lock)->spec->slots == 0 || !lock_can((lock), CAN_RANGE))

void attempt_drop(struct lock *lock)
{
	struct error ignored;

	slots_drop(lock);
	if (!TAKES_WHOLE(lock)) /* semlock's caller may hold the rest of the range */
		return;
	if (!held_read(lock).other_slot) /* or a slot that it asked for earlier */
		lock->spec->method->drop(lock, &ignored);
}

/* Sleep in the lock call until LOCK is taken.  Any signal ends the sleep: so ask the clock whether
 * the time is up, and if it is, try once more.  wakeup_set() also replaces the timer of
 * queue_await(), which would interrupt the call: a call that is interrupted and repeated goes to
 * the end of the kernel's own queue, behind programs that do not use ours. */
static enum outcome sleep_in_call(struct lock *lock, const struct deadline *deadline,
    struct error *error)
{
	enum outcome outcome;

	do {
		if (wakeup_set(deadline_left(deadline), error) != 0)
			return FAILED;
		/* step K2 of tests/models: lock it */
		outcome = lock->spec->method->take(lock, SLEEP, error);
		if (outcome == BUSY && deadline_left(deadline) == 0)
			return lock->spec->method->take(lock, TRY, error);
	} while (outcome == BUSY);
	return outcome;
}

/* Take the slots of LOCK.  If TAKES_WHOLE(LOCK), the caller has taken LOCK itself already.
 * DEADLINE NULL: only try. */
static enum outcome attempt_slots(struct lock *lock, const struct deadline *deadline,
    struct error *error)
{
	enum outcome outcome = slots_try(lock, error);

	if (outcome == BUSY && deadline != NULL)
		outcome = slots_sleep(lock, deadline, error);
	if (outcome != TAKEN)
		attempt_drop(lock);
	return outcome;
}

enum outcome attempt_try(struct lock *lock, struct error *error)
{
	enum outcome outcome = TAKEN;

	if (TAKES_WHOLE(lock))
		outcome = lock->spec->method->take(lock, TRY, error);
	if (outcome != TAKEN || lock->spec->slots == 0)
		return outcome;
	return attempt_slots(lock, NULL, error);
}

/* Try for about five milliseconds.  A process that collects slots may be stopped for longer: so the
 * last try ignores it. */
static enum outcome insist_on_slots(struct lock *lock, struct error *error)
{
	const int64_t pause = MILLISECOND / 2;
	enum outcome outcome = BUSY;

	for (int tries = 0; tries < 8 && outcome == BUSY; tries++) {
		nap(pause / 2 + attempt_jitter(pause));
		outcome = attempt_try(lock, error);
	}
	if (outcome != BUSY)
		return outcome;
	if (TAKES_WHOLE(lock))
		outcome = lock->spec->method->take(lock, TRY, error);
	else
		outcome = TAKEN;
	if (outcome == TAKEN)
		outcome = slots_try_past_collector(lock, error);
	if (outcome != TAKEN)
		attempt_drop(lock);
	return outcome;
}

enum outcome attempt_once(struct lock *lock, struct error *error)
{
	enum outcome outcome = attempt_try(lock, error);

	if (outcome != BUSY || lock->spec->slots == 0)
		return outcome;
	return insist_on_slots(lock, error);
}

enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error)
{
	enum outcome outcome = TAKEN;

	if (TAKES_WHOLE(lock))
		outcome = sleep_in_call(lock, deadline, error);
	if (outcome != TAKEN || lock->spec->slots == 0)
		return outcome;
	return attempt_slots(lock, deadline, error);
}

/* If thousands of waiters looked in step, they would find the lock taken by each other. */
int64_t attempt_jitter(int64_t most)
{
	static uint64_t state;

	state = (state + (uint64_t)clock_now()) * UINT64_C(6364136223846793005) + 1;
	return (int64_t)(state >> 33) % most;
}

/* Does a process that /proc/locks does not show share LOCK, which we do not hold?  In a PID
 * namespace, /proc/locks leaves out a flock whose taker has ended, and the processes that sleep in
 * front of it.  But if LOCK is shared, an exclusive flock(2) fails.  Try that more than once,
 * because another process that checks the lock holds it for a moment. */
static bool is_shared_unlisted(const struct lock *lock)
{
	struct lock_spec spec = *lock->spec;
	struct lock whole = *lock;
	enum outcome outcome = BUSY;
	struct error ignored;

	if (lock->spec->mode != SHARED || lock_can(lock, CAN_RANGE) || process_sees_all())
		return false;
	spec.mode = EXCLUSIVE;
	spec.slots = 0;
	whole.spec = &spec;
	for (int tries = 0; tries < 3 && outcome == BUSY; tries++) {
		outcome = attempt_try(&whole, &ignored);
		if (outcome == BUSY)
			nap(MILLISECOND / 10);
	}
	if (outcome == TAKEN)
		attempt_drop(&whole);
	return outcome == BUSY;
}

/* Does a process sleep in the kernel in front of the open LOCK, or of a slot of it?  The head of a
 * living queue may, if it wants more than we do: then the lock may be free for us, but not for that
 * process.  Only the list of all locks (/proc/locks) shows such a process; a stopped one is not
 * there.  Returns false if the list cannot be read.  Also returns true if a process that is not in
 * the list shares the flock; or if there was no time to read the whole list, and the caller looks
 * again later. */
static bool has_sleeper(const struct lock *lock, const struct checks *checks)
{
	const bool has_range = lock_can(lock, CAN_RANGE);
	const unsigned kinds = has_range ? KIND_OFD | KIND_POSIX : KIND_FLOCK | KIND_OFD;
	char line[256], page[PROCFS_PAGE];
	FILE *locks = procfs_locks(page);
	struct procfs_lock entry;
	struct effort effort = effort_begins();
	unsigned major, minor;
	bool found = false, held = false, in_part;

	if (locks == NULL)
		return false;
	file_system_device(lock->fd, lock->id.file.device, &major, &minor);
	while (!found && !effort_exceeds(&effort, checks->list_time) &&
	       fgets(line, sizeof line, locks) != NULL) {
		if (!procfs_lock_line(line, &entry) || (entry.kind & kinds) == 0 ||
		    entry.major != major || entry.minor != minor ||
		    entry.inode != (unsigned long long)lock->id.file.inode ||
		    !lock_overlaps(lock, entry.first, entry.last))
			continue;
		found = entry.waiting;
		held = held || entry.kind == KIND_FLOCK;
	}
	in_part = !found && !feof(locks);
	fclose(locks);
	/* step Q5 of tests/models: or does a process that is not in the list hold it? */
	return found || (!held && is_shared_unlisted(lock)) || (in_part && checks->looks_again);
}

/* Can LOCK be free for us, but not for a process that wants more: to write among readers, to take
 * all slots, or to lock a larger part of the file?  (A lock made of files is free for all or for
 * none.) */
static bool may_be_free_for_us_alone(const struct lock *lock)
{
	const struct bytes bytes = bytes_of(lock);

	return lock->spec->method->family == OF_KERNEL &&
	       (lock->spec->mode == SHARED || lock->spec->slots > 0 ||
		   (lock_can(lock, CAN_RANGE) && (bytes.first > 0 || bytes.last < LLONG_MAX)));
}

/* Step Q5 of tests/models.  If the lock may be free for us alone, also read the list of all locks,
 * to see whether a process sleeps in front of the lock.
 *
 * Read the list twice, half-way and after the last check.  A process that the kernel has woken is
 * in no list until it runs, which takes a while on a busy machine.  Before the second read it has
 * time to run, and then holds the lock, or sleeps again.  Besides, the kernel gives the list a page
 * at a time, and leaves out a line if an earlier line goes between two pages.
 *
 * The second read comes after the last check, because a process may fall asleep after the first
 * read.  But it comes before we take the lock: if many waiters read the list with the lock in hand,
 * the sleeper would not get the lock.
 *
 * Between two checks, the waiters before us may have had their turn, or have ended.  Then we are
 * the head of the queue, and while we check, the next waiter finds the lock free.  So take it at
 * once, and here: in PHASE_HEAD, a ticket that comes and goes could make us give the lock back
 * again and again. */
enum outcome attempt_deserted(struct lock *lock, const struct checks *checks, struct queue *queue,
    bool *sleeper, struct error *error)
{
	const bool for_us_alone = may_be_free_for_us_alone(lock);
	const int64_t most = checks->spell / checks->count;
	enum outcome outcome;

	*sleeper = false;
	for (int seen = 1; seen <= checks->count; seen++) {
		outcome = lock->spec->method->idle(lock, error); /* step Q5: is it free now? */
		if (outcome != TAKEN)
			return outcome;
		CRASH_POINT("attempt.free");
		wakeup_off(); /* the timer's signal would end the pause */
		/* if nap() fails, give up: without pauses, a queue with a slow head would look
		 * deserted */
		if (nap(most / 2 + attempt_jitter(most)) != 0 && errno != EINTR)
			return BUSY;
		if (queue != NULL && !queue_preceded(queue))
			break;
		if (for_us_alone && (seen == checks->count / 2 || seen == checks->count) &&
		    has_sleeper(lock, checks)) {
			CRASH_POINT("attempt.sleeper");
			*sleeper = true;
			return BUSY;
		}
	}
	CRASH_POINT("attempt.deserted");
	return attempt_try(lock, error); /* step Q6 of tests/models: take it */
}
