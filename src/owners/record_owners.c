/* SPDX-License-Identifier: MIT */
/* To look at a lock, open it anew: that takes nothing, and another thread may be using the caller's
 * struct lock. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "methods/table.h"
#include "methods/file/filemethods.h"
#include "owners/sources.h"

struct probe {
	struct lock_spec spec;
	struct lock lock;
	struct lock_info info;
	struct child no_child;
};

/* Is OBJECT owned by root, PID's real user, or the real user of PID's parent (sudo, for instance)?
 * If not, OBJECT proves neither that PID may be signalled nor that PID runs under the lock, because
 * any user can name any process.  (The real user counts because a daemon may switch its effective
 * user for a moment.)  Also true once PID has ended. */
static bool owner_trusted(const struct stat *object, pid_t pid)
{
	struct process process, parent;

	if (object->st_uid == 0)
		return true;
	/* if it has ended, no signal will reach it */
	if (!process_read(pid, &process))
		return kill(pid, 0) != 0 && errno == ESRCH;
	return object->st_uid == process.real_user ||
	       (process_read(process.parent, &parent) && object->st_uid == parent.real_user);
}

/* As owner_trusted(), for what is written in OBJECT: no other user may be able to write to it,
 * either. */
static bool record_trusted(const struct stat *object, pid_t pid)
{
	return (S_ISLNK(object->st_mode) || (object->st_mode & (S_IWGRP | S_IWOTH)) == 0) &&
	       owner_trusted(object, pid);
}

/* Returns 0, or -1 with ERROR filled; PROBE must be closed in both cases. */
static int probe_open(struct probe *probe, const struct lock_spec *spec, struct error *error)
{
	*probe = (struct probe){.spec = {.method = spec->method, .name = spec->name, .fd = -1},
	    .info = {.object = -1}};
	probe->lock = LOCK_OF(&probe->spec);
	probe->lock.child = &probe->no_child;
	if (spec->method->open(&probe->lock, error) != 0)
		return -1;
	return spec->method->inspect(&probe->lock, &probe->info, error);
}

static void probe_close(struct probe *probe)
{
	lock_info_forget(&probe->info);
	probe->spec.method->release(&probe->lock);
}

/* Read the record of the lock NAME.  Returns its kind; RECORD_ABSENT if METHOD did not make the
 * lock. */
static enum record_kind probe_record(const char *name, const struct method *method,
    struct record *record)
{
	const struct lock_spec spec = {.method = method, .name = name};
	struct probe probe;
	struct error ignored;

	*record = (struct record){.kind = RECORD_ABSENT};
	if (probe_open(&probe, &spec, &ignored) == 0 && probe.info.there)
		*record = probe.info.record;
	probe_close(&probe);
	return record->kind;
}

const struct method *record_method(const char *name)
{
	const struct method *method;
	struct record record;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		if (method->family == OF_FILES &&
		    probe_record(name, method, &record) == RECORD_FULL)
			return method;
	return NULL;
}

/* ---- which process a record names ---- */

static bool is_in_namespace(pid_t pid, uint64_t pidns)
{
	char path[40];
	struct stat its;

	snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)pid);
	return stat(path, &its) == 0 && its.st_ino == pidns;
}

/* Is PID the semlock that RECORD names, which releases the lock?  A process that started later than
 * RECORD's command only reuses the PID. */
static bool is_semlock_of(pid_t pid, const struct record *record)
{
	struct procfs_stat seen;

	return pid == record->semlock && process_stat(pid, &seen) && seen.started <= record->start;
}

/* Is MEMBER the process that RECORD names, or the semlock that waits for it to end?  With a record
 * from another PID namespace: is MEMBER in that namespace? */
static bool is_named(pid_t member, const struct record *record)
{
	struct procfs_stat seen;

	if (record->pidns != 0 && record->pidns != host_id()->pidns)
		return is_in_namespace(member, record->pidns);
	if (is_semlock_of(member, record))
		return true;
	if (record->pid <= 0 || !process_stat(record->pid, &seen) ||
	    (record->start != 0 && record->start != seen.started))
		return false;
	return member == record->pid || member == seen.parent;
}

/* Does RECORD name a process through which OWNER has the lock's file under flock(2), or a child of
 * one? */
static bool record_names(const struct owner *owner, const struct record *record)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (is_named(owner->members[i].pid, record))
			return true;
	return owner->nmembers == 0 && owner->taker > 0 && is_named(owner->taker, record);
}

/* OWNER has the lock's file, with RECORD in it, under flock(2): is it the lock's holder, and not a
 * waiter?  A waiter also flocks the file for a moment, to judge a lock that nobody has flocked or
 * to take the lock from a dead holder; but no other process inherits that flock.  A holder's flock
 * is shared by its command.  If the holder (the taker) has ended, only the command still has the
 * flock.  (In a PID namespace, the kernel then names no taker: 0.) */
static bool is_holder(const struct owner *owner, const struct record *record)
{
	struct procfs_stat seen;

	if (owner->nmembers > 1 || record_names(owner, record))
		return true;
	if (owner->nmembers == 0) /* taker 0: in another PID namespace, or ended */
		return owner->taker <= 0 || !process_stat(owner->taker, &seen);
	return !owner_has(owner, owner->taker);
}

bool record_is_link(const char *name, const struct owner *holder)
{
	struct record record;

	return probe_record(name, method_named("link"), &record) == RECORD_PID &&
	       record_names(holder, &record);
}

/* Does RECORD come from another host, as far as it says? */
static bool is_other_host(const struct record *record)
{
	return (record->host[0] != '\0' && strcmp(record->host, host_id()->host) != 0) ||
	       (record->machine[0] != '\0' && strcmp(record->machine, host_id()->machine) != 0);
}

/* ---- the holder ---- */

/* Set HOLDER's process to the recorded command, and its supervisor to the semlock that waits for
 * the command to end.  Returns false if that command cannot be seen alive. */
static bool name_command(struct owner *holder, const struct record *record)
{
	struct process process;
	struct procfs_stat parent;

	if (record->pid <= 0 || !process_lives(record->pid) ||
	    (record->pidns != 0 && record->pidns != host_id()->pidns) ||
	    !process_read(record->pid, &process) ||
	    (record->start != 0 && record->start != process.started))
		return false;
	holder->process = process;
	holder->since = process_start(process.started);
	holder->supervisor = process_stat(process.parent, &parent) && name_is_semlock(parent.name)
	                         ? process.parent
	                         : 0;
	holder->since_exact = holder->supervisor != 0;
	return true;
}

static enum verdict judge_record(const struct probe *probe)
{
	const struct lock_info *info = &probe->info;

	return info->legible
	           ? takeover_judge(&probe->lock, &info->record, &info->status, clock_realtime())
	           : UNKNOWN;
}

/* Is this process in a PID namespace (a container's), and may the recorded process hold the lock
 * from outside it?  The kernel does not show that process's flock here.  The record of a link lock
 * names no namespace: then try the flock. */
static bool may_be_outside(const struct probe *probe)
{
	const struct record *record = &probe->info.record;
	const struct host_id *this = host_id();
	char object[40];

	snprintf(object, sizeof object, "/proc/self/fd/%d", probe->info.object);
	if (record->pidns == 0)
		return probe->lock.files.state->object->pid_only &&
		       kernel_owner_outside(object, KIND_FLOCK);
	return record->pidns != this->pidns && !process_sees_all() &&
	       record_of_boot(record, this->boot);
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
	if (verdict == UNKNOWN && record->earlier)
		return DOUBT_EARLIER;
	if (host_id()->pid_max > 0 && record->pid > host_id()->pid_max)
		return DOUBT_RANGE;
	if (verdict == ALIVE && !record_trusted(&info->status, record->pid))
		return DOUBT_OWNER;
	if (verdict == ALIVE)
		return record->start != 0 ? DOUBT_NONE : DOUBT_NUMBER;
	return is_other_host(record) || !probe->lock.files.state->local ? DOUBT_HOST
	                                                                : DOUBT_NAMESPACE;
}

/* Add the holder that the record names.  FLOCKED: a process that the record does not name has the
 * lock under flock(2).  That is a waiter that judges the record, or takes the lock from a dead
 * holder; or it is another program. */
static void add_recorded(struct owners *found, const struct probe *probe, bool flocked)
{
	const struct lock_info *info = &probe->info;
	const struct record *record = &info->record;
	struct owner *holder = owners_add(found);

	if (holder == NULL)
		return;
	found->holders = found->count;
	holder->verdict = flocked && !info->legible ? ALIVE : judge_record(probe);
	if (holder->verdict == ALIVE && name_command(holder, record)) {
		holder->doubt = record_doubt(probe, ALIVE);
		owners_join(found, holder, record->pid, -1);
		if (record->semlock > 0 && holder->supervisor == record->semlock)
			owners_join(found, holder, holder->supervisor, -1);
		return;
	}
	if (holder->verdict == ALIVE && info->legible)
		holder->verdict = judge_record(probe); /* the process may have ended since */
	if (holder->verdict == ALIVE && record->semlock > 0 &&
	    process_read(record->semlock, &holder->process)) {
		/* The command has ended, and its semlock is about to release the lock. */
		holder->since = process_start(holder->process.started);
		holder->doubt =
		    record_trusted(&info->status, record->semlock) ? DOUBT_NONE : DOUBT_OWNER;
		owners_join(found, holder, record->semlock, -1);
		return;
	}
	holder->doubt = record_doubt(probe, holder->verdict);
	if (holder->verdict == ALIVE && holder->doubt == DOUBT_NONE)
		holder->doubt = DOUBT_NUMBER; /* the process may be hidden (hidepid) */
	if (holder->verdict == DEAD && (flocked || may_be_outside(probe))) {
		holder->verdict = UNKNOWN;
		holder->doubt = flocked ? DOUBT_FLOCK : DOUBT_NAMESPACE;
	}
	holder->process.pid = record->pid;
	holder->process.user = record->kind == RECORD_FULL ? record->uid : (uid_t)-1;
	if (holder->doubt == DOUBT_HOST)
		snprintf(holder->host, sizeof holder->host, "%s",
		    record->host[0] == '\0' ? "?" : record->host);
}

/* A holder of the flock was found.  If the record names that holder, fill in the holder from the
 * record.  If the holder's process was not seen, only the record can name it.  Do not trust another
 * user's object: it may be a link to a file that a process has flocked for another purpose, or its
 * record may name a waiter, which has the flock for a moment. */
static void name_flocked(struct owners *found, const struct probe *probe)
{
	const struct lock_info *info = &probe->info;
	struct owner *holder = &found->list[0];
	bool trusted = holder->nmembers == 0;

	for (size_t i = 0; i < holder->nmembers; i++)
		trusted = trusted || owner_trusted(&info->status, holder->members[i].pid);
	if (!trusted)
		holder->doubt = DOUBT_OWNER;
	if (!record_names(holder, &info->record) || !name_command(holder, &info->record))
		return;
	if (found->seen == SEEN_NOT_ALL)
		found->seen = SEEN_ALL;
	if (holder->nmembers > 0)
		return;
	holder->doubt = record_doubt(probe, ALIVE);
	owners_join(found, holder, info->record.pid, -1);
}

/* Is OWNER the semlock of a link lock whose command has ended?  The record names only the command,
 * but this semlock has yet to release the lock.  Its descriptor proves it: only the semlock that
 * made the lock has the file open for writing; a waiter on a local file system only reads it. */
static bool has_made_it(const struct owner *owner, const struct probe *probe)
{
	char path[64];
	struct stat named;

	if (!probe->lock.files.state->object->pid_only || !probe->lock.files.state->local ||
	    owner->nmembers == 0 || process_lives(probe->info.record.pid) ||
	    !name_is_semlock(owner->process.name))
		return false;
	snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)owner->members[0].pid,
	    owner->members[0].fd);
	return lstat(path, &named) == 0 && (named.st_mode & S_IWUSR) != 0;
}

static enum searched look_at(struct owners *found, const struct probe *probe, struct search *search,
    struct error *error)
{
	const struct lock_info *info = &probe->info;
	struct snapshot snapshot;
	struct owner *owner;
	size_t flocks;
	bool steady;
	enum searched look;

	if (info->there && info->record.kind == RECORD_ABSENT) {
		error_plain(error, ERROR_OPEN, "is a directory of other files, not a lock");
		return SEARCHED_FAILED;
	}
	if (snapshot_take_object(&snapshot, &probe->lock, info->object, search, error) != 0)
		return SEARCHED_FAILED;
	look = kernel_owners_add(found, &snapshot, KIND_FLOCK, search, error);
	if (look >= SEARCHED_PIECE) {
		snapshot_forget(&snapshot);
		return look;
	}
	flocks = found->count;
	for (size_t i = flocks; i > 0; i--)
		if (!is_holder(&found->list[i - 1], &info->record) &&
		    !has_made_it(&found->list[i - 1], probe))
			owners_drop(found, i - 1);
	steady = found->count == flocks;
	if (found->count > 0) {
		name_flocked(found, probe);
	} else if (info->there) {
		add_recorded(found, probe, !steady);
	}
	if (found->count > 0) {
		owner = &found->list[0];
		owner->touched = (int64_t)info->status.st_mtim.tv_sec * SECOND;
		owner->since = info->record.since == 0 ? owner->since : info->record.since * SECOND;
		owner->since_exact = owner->since_exact || info->record.since != 0;
	}
	waiters_add(found, &snapshot, KIND_FLOCK, search);
	/* whatever kernel lock a waiter sleeps in, it waits for this lock */
	for (size_t i = 0; i < found->count; i++) {
		found->list[i].method = probe->spec.method->name;
		found->list[i].mode = MODE_EXCLUSIVE;
		found->list[i].kind = 0;
	}
	snapshot_forget(&snapshot);
	return steady ? look : SEARCHED_MISSED;
}

static enum searched record_add(struct owners *found, const struct lock *lock,
    struct search *search, struct error *error)
{
	struct probe probe;
	enum searched look = SEARCHED_FAILED;

	if (probe_open(&probe, lock->spec, error) == 0)
		look = look_at(found, &probe, search, error);
	probe_close(&probe);
	return look;
}

bool record_names_nobody(const struct lock *lock, int64_t age)
{
	struct probe probe;
	struct error ignored;
	const struct lock_info *info = &probe.info;
	const bool nobody = probe_open(&probe, lock->spec, &ignored) == 0 && info->there &&
	                    info->legible && info->record.pid <= 0 &&
	                    clock_realtime() - (int64_t)info->status.st_mtim.tv_sec * SECOND > age;

	probe_close(&probe);
	return nobody;
}

/* ---- does a certain process hold it? ---- */

/* The descriptor through which process PID has INFO's lock under flock(2); -1: none. */
static int flocked_fd(const struct lock_info *info, pid_t pid)
{
	struct identity object = identity_of(&info->status);
	struct open_fds open_fds = {.files = &object, .nfiles = 1};
	int fd = -1;

	if (info->object < 0)
		return -1;
	open_fds_of(&open_fds, pid);
	for (size_t i = 0; i < open_fds.count; i++)
		if (open_fds.list[i].locked && open_fds.list[i].lock.kind == KIND_FLOCK)
			fd = open_fds.list[i].fd;
	open_fds_forget(&open_fds);
	return fd;
}

static bool is_recorded(const struct lock_info *info, pid_t pid)
{
	const struct record *record = &info->record;
	struct procfs_stat seen;

	return info->legible && record->kind == RECORD_FULL &&
	       (record->pid == pid || is_semlock_of(pid, record)) &&
	       record_trusted(&info->status, pid) && record->start != 0 &&
	       record_of_boot(record, host_id()->boot) && record->pidns == host_id()->pidns &&
	       !is_other_host(record) && process_stat(pid, &seen) &&
	       (seen.started == record->start || record->pid != pid) && !procfs_ended(seen.state);
}

/* The lock's owner must pass owner_trusted().  And PID must have the lock under flock(2), or the
 * record must name it by PID and start, of this boot and PID namespace, as the command or its
 * semlock. */
static bool is_proven(const struct lock *lock, pid_t pid)
{
	struct probe probe;
	struct error ignored;
	bool holds = probe_open(&probe, lock->spec, &ignored) == 0 && probe.info.there &&
	             owner_trusted(&probe.info.status, pid) &&
	             (flocked_fd(&probe.info, pid) >= 0 || is_recorded(&probe.info, pid));

	probe_close(&probe);
	return holds;
}

/* Searches WALK's processes, but reads PID and the record anew. */
static bool record_verify(const struct lock *lock, pid_t pid, struct fd_walk *walk)
{
	struct search_terms terms = SEARCH_FOR_PROOF;
	struct search search = {.terms = &terms,
	    .limit = allowance_begins(terms.budget, terms.deadline)};
	struct owners found = {0};
	struct error ignored;
	bool holds;

	terms.walk = walk;
	holds = record_add(&found, lock, &search, &ignored) <= SEARCHED_MISSED &&
	        found.holders > 0 && found.list[0].verdict == ALIVE &&
	        found.list[0].doubt == DOUBT_NONE && owner_has(&found.list[0], pid);
	owners_forget(&found);
	search_terms_forget(&terms);
	return holds && is_proven(lock, pid);
}

/* May this process have inherited a descriptor for the object of PROBE, which opened LOCK anew?  If
 * not, /proc need not be read. */
static bool may_inherit(const struct probe *probe, const struct lock *lock)
{
	const struct stat *status = &probe->info.status;
	const struct identity object = identity_of(status);
	const int own[] = {lock->fd, probe->info.object};

	return probe->info.there && probe->info.object >= 0 && open_fds_may_inherit(&object, own);
}

/* Set *FD to the descriptor by which this process has LOCK under flock(2): then it runs under the
 * lock, and has inherited the descriptor.  The lock's owner must pass owner_trusted(), because its
 * name may be a link to a file that is flocked for another purpose. */
static enum nesting record_nesting(const struct lock *lock, int *fd)
{
	struct probe probe;
	struct error ignored;

	*fd = -1;
	if (probe_open(&probe, lock->spec, &ignored) == 0 && may_inherit(&probe, lock) &&
	    owner_trusted(&probe.info.status, getpid()))
		*fd = flocked_fd(&probe.info, getpid());
	probe_close(&probe);
	return *fd >= 0 ? NESTING_COVERS : NESTING_NONE;
}

const struct source record_source = {record_add, record_verify, record_nesting};
