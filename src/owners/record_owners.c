#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "owners/kernel_owners.h"
#include "methods/file/takeover.h"
#include "owners/verify.h"
#include "owners/record_owners.h"
#include "owners/proc_snapshot.h"
#include "owners/probe.h"
#include "owners/waiters.h"

/* The command, and the semlock that waits for it to end. */
static bool name_recorded(struct owner *holder, const struct record *record)
{
	struct process process;
	struct procfs_stat parent;

	if (record->pid <= 0 || !process_lives(record->pid) || (record->pidns != 0 && record->pidns != host_id()->pidns) ||
	    !process_read(record->pid, &process) ||
	    (record->start != 0 && record->start != process.started))
		return false;
	holder->process = process;
	holder->since = process_start(process.started);
	holder->supervisor = process_stat(process.parent, &parent) &&
			  strcmp(parent.name, "semlock") == 0 ? process.parent : 0;
	holder->since_exact = holder->supervisor != 0;
	return true;
}

/* Its command has ended: then the semlock that the record names is the one who still has it. */
static bool name_semlock(struct owner *holder, const struct record *record)
{
	struct process process;

	if (record->semlock <= 0 || !process_read(record->semlock, &process))
		return false;
	holder->process = process;
	holder->since = process_start(process.started);
	holder->supervisor = record->semlock;
	holder->lets_go = true;
	return true;
}

static enum verdict judge(const struct probe *probe)
{
	const struct lock_info *lock_info = &probe->lock_info;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return lock_info->legible ? takeover_judge(&probe->lock, &lock_info->record, &lock_info->status,
				    (int64_t)now.tv_sec * SECOND + now.tv_nsec)
			      : UNKNOWN;
}

static enum doubt doubt_about(const struct lock_info *lock_info, enum verdict verdict)
{
	const struct record *record = &lock_info->record;

	if (!lock_info->legible)
		return DOUBT_ILLEGIBLE;
	if (verdict == DEAD)
		return DOUBT_NONE;
	if (record->pid <= 0)
		return DOUBT_NOBODY;
	if (host_id()->pid_max > 0 && record->pid > host_id()->pid_max)
		return DOUBT_RANGE;
	if (verdict == ALIVE && !record_trusted(&lock_info->carrier, record->pid))
		return DOUBT_OWNER;
	if (verdict == ALIVE)
		return record->start != 0 ? DOUBT_NONE : DOUBT_NUMBER;
	return verify_other_host(record) || !lock_info->local ? DOUBT_HOST : DOUBT_NAMESPACE;
}

static void leave_nameless(struct owner *holder, const struct record *record)
{
	holder->process.pid = record->pid;
	holder->process.user = record->kind == RECORD_FULL ? record->uid : (uid_t)-1;
	if (holder->doubt == DOUBT_HOST)
		snprintf(holder->host, sizeof holder->host, "%s",
		    record->host[0] == '\0' ? "?" : record->host);
}

/* It is what it says of itself; unless somebody has it under FLOCK, whom it does not name: a
 * waiter who judges it, or takes it from the dead, or somebody else. */
static void add_recorded(struct owners *found, const struct probe *probe, bool flocked)
{
	const struct lock_info *lock_info = &probe->lock_info;
	struct owner *holder = owners_add(found);

	if (holder == NULL)
		return;
	found->pipe_holders = found->count;
	holder->verdict = flocked && !lock_info->legible ? ALIVE : judge(probe);
	if (holder->verdict == ALIVE && name_recorded(holder, &lock_info->record)) {
		holder->doubt = doubt_about(lock_info, ALIVE);
		owners_join(found, holder, lock_info->record.pid, -1);
		return;
	}
	if (holder->verdict == ALIVE && lock_info->legible)
		holder->verdict = judge(probe); /* it may have ended just now */
	if (holder->verdict == ALIVE && name_semlock(holder, &lock_info->record))
		return;
	holder->doubt = doubt_about(lock_info, holder->verdict);
	if (holder->verdict == ALIVE && holder->doubt == DOUBT_NONE)
		holder->doubt = DOUBT_NUMBER; /* it is hidden from us */
	if (holder->verdict == DEAD && flocked) {
		holder->verdict = UNKNOWN;
		holder->doubt = DOUBT_FLOCK;
	}
	leave_nameless(holder, &lock_info->record);
}

static void describe(struct owner *holder, const struct lock_info *lock_info)
{
	holder->touched = (int64_t)lock_info->status.st_mtim.tv_sec * SECOND;
	if (lock_info->record.since == 0)
		return;
	holder->since = lock_info->record.since * SECOND;
	holder->since_exact = true;
}

/* Whichever way the kernel has them sleep, it is one lock that all of them are about. */
static void describe_all(struct owners *found, const struct method *method)
{
	for (size_t i = 0; i < found->count; i++) {
		found->list[i].method = method->name;
		found->list[i].mode = MODE_EXCLUSIVE;
		found->list[i].kind = 0;
	}
}

/* An object of another user's may be a link to a file that its processes have under flock for
 * another purpose, or name one that waits, which has the flock for a moment. */
static bool is_owners(const struct owner *holder, const struct stat *object)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (owner_trusted(object, holder->members[i].pid))
			return true;
	return false;
}

/* Who has it under flock, called by what the record says, if that is so.  Where we may not look
 * at the flock's owners, who that is rests on the record alone. */
static void name_flocked(struct owners *found, const struct lock_info *lock_info)
{
	struct owner *holder = &found->list[0];

	if (holder->nmembers > 0 && !is_owners(holder, &lock_info->carrier))
		holder->doubt = DOUBT_OWNER;
	if (!verify_names(holder, &lock_info->record) || !name_recorded(holder, &lock_info->record))
		return;
	found->unseen = false;
	if (holder->nmembers > 0)
		return;
	holder->doubt = doubt_about(lock_info, ALIVE);
	owners_join(found, holder, lock_info->record.pid, -1);
}

/* Of those who have it under flock, the holder alone.  Returns false when there were others. */
static bool keep_holder(struct owners *found, const struct record *record)
{
	size_t all = found->count;

	for (size_t i = found->count; i > 0; i--)
		if (!verify_is_holder(&found->list[i - 1], record))
			owners_drop(found, i - 1);
	found->pipe_holders = found->count;
	return found->count == all;
}

/* Returns 1, 0 when it has to be looked at again, or -1 with ERROR filled. */
static int look_once(struct owners *found, const struct probe *probe, struct error *error)
{
	const struct lock_info *lock_info = &probe->lock_info;
	struct proc_snapshot proc_snapshot;
	bool steady = true;

	if (lock_info->there && lock_info->record.kind == RECORD_ABSENT)
		return error_say(error, ERROR_OPEN, "is a directory of other files, and no lock");
	if (proc_snapshot_take_object(&proc_snapshot, &probe->lock, lock_info->object, error) != 0) {
		proc_snapshot_forget(&proc_snapshot);
		return -1;
	}
	kernel_owners_add(found, &proc_snapshot, KIND_FLOCK);
	if (lock_info->object >= 0)
		steady = keep_holder(found, &lock_info->record);
	if (found->count > 0) {
		name_flocked(found, lock_info);
	} else if (lock_info->there) {
		add_recorded(found, probe, !steady);
		steady = steady && lock_info->legible; /* /proc/locks can leave one out that others move past */
	}
	if (found->count > 0)
		describe(&found->list[0], lock_info);
	waiters_add(found, &proc_snapshot, KIND_FLOCK);
	describe_all(found, probe->lock.method);
	found->failed = found->failed || proc_snapshot.open_fds.failed;
	steady = steady && (!found->unseen || proc_snapshot.open_fds.blind);
	proc_snapshot_forget(&proc_snapshot);
	return steady;
}

int record_owners_look(struct owners *found, const struct lock *lock, struct error *error)
{
	struct probe probe;
	int seen = 0;

	for (int tries = 0; tries < 4 && seen == 0; tries++) {
		owners_forget(found);
		seen = probe_open(&probe, lock, error) == 0 ? look_once(found, &probe, error) : -1;
		probe_close(&probe);
	}
	return seen < 0 ? -1 : 0;
}

bool record_owners_held(const struct lock *lock, pid_t pid)
{
	struct owners found = {0};
	struct error ignored;
	bool holds = record_owners_look(&found, lock, &ignored) == 0 && found.pipe_holders > 0 &&
		     found.list[0].verdict == ALIVE && found.list[0].doubt == DOUBT_NONE &&
		     occupant_has(&found.list[0], pid);

	owners_forget(&found);
	return holds && verify_now(lock, pid);
}
