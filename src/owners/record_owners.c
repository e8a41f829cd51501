/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "methods/file/takeover.h"
#include "owners/probe.h"
#include "owners/proc_snapshot.h"
#include "owners/sources.h"
#include "sys/deadline.h"

/* HOLDER becomes the recorded command, with the semlock that waits for it to end. */
static bool name_command(struct owner *holder, const struct record *record)
{
	struct process process;
	struct procfs_stat parent;

	if (record->pid <= 0 || !process_lives(record->pid) ||
	    (record->pidns != 0 && record->pidns != host_id()->pidns) || !process_read(record->pid, &process) ||
	    (record->start != 0 && record->start != process.started))
		return false;
	holder->process = process;
	holder->since = process_start(process.started);
	holder->supervisor = process_stat(process.parent, &parent) &&
			  strcmp(parent.name, "semlock") == 0 ? process.parent : 0;
	holder->since_exact = holder->supervisor != 0;
	return true;
}

static enum verdict judge_record(const struct probe *probe)
{
	const struct lock_info *info = &probe->info;

	return info->legible ? takeover_judge(&probe->lock, &info->record, &info->status, clock_realtime())
			     : UNKNOWN;
}

/* In a PID namespace, as in a container, the kernel shows no flock of a process outside of it: the process that
 * the record names may hold the lock.  A link's does not say where: its flock tells. */
static bool may_be_outside(const struct probe *probe)
{
	const struct record *record = &probe->info.record;
	const struct host_id *this = host_id();
	char object[40];

	snprintf(object, sizeof object, "/proc/self/fd/%d", probe->info.object);
	if (record->pidns == 0)
		return probe->lock.file->object->pid_only && probe_locked_outside(object, KIND_FLOCK);
	return record->pidns != this->pidns && this->pidns != FIRST_PIDNS && record_of_boot(record, this->boot);
}

static enum doubt record_doubt(const struct probe *probe, enum verdict verdict)
{
	const struct lock_info *info = &probe->info;
	const struct record *record = &info->record;

	if (!info->legible)
		return DOUBT_ILLEGIBLE;
	if (verdict == DEAD)
		return DOUBT_NONE;
	if (record->pid <= 0)
		return DOUBT_NOBODY;
	if (host_id()->pid_max > 0 && record->pid > host_id()->pid_max)
		return DOUBT_RANGE;
	if (verdict == ALIVE && !record_trusted(&info->status, record->pid))
		return DOUBT_OWNER;
	if (verdict == ALIVE)
		return record->start != 0 ? DOUBT_NONE : DOUBT_NUMBER;
	return probe_other_host(record) || !probe->lock.file->local ? DOUBT_HOST : DOUBT_NAMESPACE;
}

/* The command has ended: HOLDER becomes the recorded semlock, which is about to release the lock. */
static bool name_semlock(struct owner *holder, const struct probe *probe)
{
	const struct record *record = &probe->info.record;

	if (record->semlock <= 0 || !process_read(record->semlock, &holder->process))
		return false;
	holder->since = process_start(holder->process.started);
	holder->doubt = record_trusted(&probe->info.status, record->semlock) ? DOUBT_NONE : DOUBT_OWNER;
	return true;
}

static void copy_record(struct owner *holder, const struct record *record)
{
	holder->process.pid = record->pid;
	holder->process.user = record->kind == RECORD_FULL ? record->uid : (uid_t)-1;
	if (holder->doubt == DOUBT_HOST)
		snprintf(holder->host, sizeof holder->host, "%s",
		    record->host[0] == '\0' ? "?" : record->host);
}

/* Add the holder that the record names.  FLOCKED: a process that it does not name has the lock under
 * flock(2): a waiter that judges it or takes it from a dead holder, or a foreign program. */
static void add_recorded(struct owners *found, const struct probe *probe, bool flocked)
{
	const struct lock_info *info = &probe->info;
	struct owner *holder = owners_add(found);

	if (holder == NULL)
		return;
	found->holders = found->count;
	holder->verdict = flocked && !info->legible ? ALIVE : judge_record(probe);
	if (holder->verdict == ALIVE && name_command(holder, &info->record)) {
		holder->doubt = record_doubt(probe, ALIVE);
		owners_join(found, holder, info->record.pid, -1);
		if (info->record.semlock > 0 && holder->supervisor == info->record.semlock)
			owners_join(found, holder, holder->supervisor, -1);
		return;
	}
	if (holder->verdict == ALIVE && info->legible)
		holder->verdict = judge_record(probe); /* the process may have ended since */
	if (holder->verdict == ALIVE && name_semlock(holder, probe)) {
		owners_join(found, holder, info->record.semlock, -1);
		return;
	}
	holder->doubt = record_doubt(probe, holder->verdict);
	if (holder->verdict == ALIVE && holder->doubt == DOUBT_NONE)
		holder->doubt = DOUBT_NUMBER; /* the process is hidden (hidepid) */
	if (holder->verdict == DEAD && (flocked || may_be_outside(probe))) {
		holder->verdict = UNKNOWN;
		holder->doubt = flocked ? DOUBT_FLOCK : DOUBT_NAMESPACE;
	}
	copy_record(holder, &info->record);
}

static void set_times(struct owner *holder, const struct lock_info *info)
{
	holder->touched = (int64_t)info->status.st_mtim.tv_sec * SECOND;
	if (info->record.since == 0)
		return;
	holder->since = info->record.since * SECOND;
	holder->since_exact = true;
}

/* Whatever kernel lock a waiter sleeps in, it waits for this lock. */
static void set_method(struct owners *found, const struct method *method)
{
	for (size_t i = 0; i < found->count; i++) {
		found->list[i].method = method->name;
		found->list[i].mode = MODE_EXCLUSIVE;
		found->list[i].kind = 0;
	}
}

/* Another user's object may be a link to a file that a process has under flock for another purpose, or
 * name a waiter, which has the flock for a moment. */
static bool is_trusted(const struct owner *holder, const struct stat *object)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (owner_trusted(object, holder->members[i].pid))
			return true;
	return false;
}

/* Give the flock's holder the name in the record, if that is the same process.  If the flock's holder
 * is unseen, the record alone tells. */
static void name_flocked(struct owners *found, const struct probe *probe)
{
	const struct lock_info *info = &probe->info;
	struct owner *holder = &found->list[0];

	if (holder->nmembers > 0 && !is_trusted(holder, &info->status))
		holder->doubt = DOUBT_OWNER;
	if (!probe_names(holder, &info->record) || !name_command(holder, &info->record))
		return;
	found->unseen = false;
	if (holder->nmembers > 0)
		return;
	holder->doubt = record_doubt(probe, ALIVE);
	owners_join(found, holder, info->record.pid, -1);
}

/* A link's record does not name the semlock that releases the lock when the command, which it names, has ended.  But
 * that semlock alone has the file open for writing: on a local file system, a waiter reads. */
static bool has_made_it(const struct owner *owner, const struct probe *probe)
{
	char path[64];
	struct stat link;

	if (!probe->lock.file->object->pid_only || !probe->lock.file->local || owner->nmembers == 0 ||
	    process_lives(probe->info.record.pid) || strcmp(owner->process.name, "semlock") != 0)
		return false;
	snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)owner->members[0].pid, owner->members[0].fd);
	return lstat(path, &link) == 0 && (link.st_mode & S_IWUSR) != 0;
}

/* Of the owners of the flock, keep the lock's holder.  Returns false when there were others. */
static bool keep_holder(struct owners *found, const struct probe *probe)
{
	size_t all = found->count;

	for (size_t i = found->count; i > 0; i--)
		if (!probe_is_holder(&found->list[i - 1], &probe->info.record) && !has_made_it(&found->list[i - 1], probe))
			owners_drop(found, i - 1);
	return found->count == all;
}

static int look_at(struct owners *found, const struct probe *probe, struct error *error)
{
	const struct lock_info *info = &probe->info;
	struct proc_snapshot snapshot;
	bool steady = true;

	if (info->there && info->record.kind == RECORD_ABSENT)
		return error_plain(error, ERROR_OPEN, "is a directory of other files, and no lock");
	if (proc_snapshot_take_object(&snapshot, &probe->lock, info->object, error) != 0)
		return -1;
	kernel_owners_add(found, &snapshot, KIND_FLOCK);
	if (info->object >= 0)
		steady = keep_holder(found, probe);
	if (found->count > 0) {
		name_flocked(found, probe);
	} else if (info->there) {
		add_recorded(found, probe, !steady);
		steady = steady && info->legible; /* /proc/locks may skip a line while it changes */
	}
	if (found->count > 0)
		set_times(&found->list[0], info);
	waiters_add(found, &snapshot, KIND_FLOCK);
	set_method(found, probe->lock.spec->method);
	steady = steady && (!found->unseen || snapshot.open_fds.blind);
	proc_snapshot_forget(&snapshot);
	return steady;
}

int record_owners_add(struct owners *found, const struct lock *lock, struct error *error)
{
	struct probe probe;
	int seen = probe_open(&probe, lock, error) == 0 ? look_at(found, &probe, error) : -1;

	probe_close(&probe);
	return seen;
}
