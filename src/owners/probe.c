/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owners/probe.h"
#include "sys/files.h"
#include "sys/open_fds.h"

int probe_open(struct probe *probe, const struct lock *lock, struct error *error)
{
	*probe = (struct probe){.info = {.object = -1}};
	probe->spec = (struct lock_spec){.method = lock->spec->method, .name = lock->spec->name, .fd = -1};
	probe->lock = LOCK_OF(&probe->spec);
	probe->lock.child = &probe->no_child;
	if (probe->lock.spec->method->open(&probe->lock, error) != 0)
		return -1;
	return probe->lock.spec->method->inspect(&probe->lock, &probe->info, error);
}

void probe_close(struct probe *probe)
{
	lock_info_forget(&probe->info);
	probe->lock.spec->method->release(&probe->lock);
}

enum record_kind probe_record(const char *name, const struct method *method, struct record *record)
{
	const struct lock_spec spec = {.method = method, .name = name};
	const struct lock lock = {.spec = &spec};
	struct probe probe;
	struct error ignored;

	*record = (struct record){.kind = RECORD_ABSENT};
	if (probe_open(&probe, &lock, &ignored) == 0 && probe.info.there)
		*record = probe.info.record;
	probe_close(&probe);
	return record->kind;
}

const struct method *probe_method(const char *name)
{
	const struct method *method;
	struct record record;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		if ((method->can & LEAVES_RECORD) != 0 && probe_record(name, method, &record) == RECORD_FULL)
			return method;
	return NULL;
}

static bool is_in_namespace(pid_t pid, uint64_t pidns)
{
	char path[40];
	struct stat namespace;

	snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)pid);
	return stat(path, &namespace) == 0 && namespace.st_ino == pidns;
}

/* Is PID the semlock of RECORD, that releases the lock?  A process that started later than RECORD's has merely reused
 * its PID. */
static bool is_semlock_of(pid_t pid, const struct record *record)
{
	struct procfs_stat stat;

	return pid == record->semlock && process_stat(pid, &stat) && stat.started <= record->start;
}

/* Is MEMBER the process that RECORD names, or its parent, the semlock that waits for its end? */
static bool is_named(pid_t member, const struct record *record)
{
	struct procfs_stat stat;

	if (record->pidns != 0 && record->pidns != host_id()->pidns)
		return is_in_namespace(member, record->pidns);
	if (is_semlock_of(member, record))
		return true;
	if (record->pid <= 0 || !process_stat(record->pid, &stat) ||
	    (record->start != 0 && record->start != stat.started))
		return false;
	return member == record->pid || member == stat.parent;
}

bool probe_names(const struct owner *owner, const struct record *record)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (is_named(owner->members[i].pid, record))
			return true;
	return owner->nmembers == 0 && owner->taker > 0 && is_named(owner->taker, record);
}

/* A waiter takes the flock for a moment as well, to judge a lock without a flock or to take it from
 * a dead holder; no other process inherits that flock.  The holder's flock is its command's as well,
 * or its taker has ended: then the kernel, in a PID namespace, names no taker (0). */
bool probe_is_holder(const struct owner *owner, const struct record *record)
{
	struct procfs_stat stat;

	if (owner->nmembers > 1 || probe_names(owner, record))
		return true;
	if (owner->nmembers == 0) /* taker 0: in another PID namespace */
		return owner->taker <= 0 || !process_stat(owner->taker, &stat);
	return !owner_has(owner, owner->taker);
}

bool probe_other_host(const struct record *record)
{
	return (record->host[0] != '\0' && strcmp(record->host, host_id()->host) != 0) ||
	       (record->machine[0] != '\0' && strcmp(record->machine, host_id()->machine) != 0);
}

/* The descriptor by which process PID has the lock of INFO under flock(2); -1: none. */
static int flocked_fd(const struct lock_info *info, pid_t pid)
{
	struct identity object = {info->status.st_dev, info->status.st_ino};
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
	struct procfs_stat stat;

	return info->legible && record->kind == RECORD_FULL && (record->pid == pid || is_semlock_of(pid, record)) &&
	       record_trusted(&info->status, pid) && record->start != 0 && record_of_boot(record, host_id()->boot) &&
	       record->pidns == host_id()->pidns && !probe_other_host(record) &&
	       process_stat(pid, &stat) && (stat.started == record->start || record->pid != pid) &&
	       !procfs_ended(stat.state);
}

bool probe_verify(const struct lock *lock, pid_t pid)
{
	struct probe probe;
	struct error ignored;
	bool holds = probe_open(&probe, lock, &ignored) == 0 && probe.info.there &&
		     owner_trusted(&probe.info.status, pid) &&
		     (flocked_fd(&probe.info, pid) >= 0 || is_recorded(&probe.info, pid));

	probe_close(&probe);
	return holds;
}

int probe_inherited(const struct lock *lock)
{
	struct probe probe;
	struct error ignored;
	int fd = -1;

	if (probe_open(&probe, lock, &ignored) == 0 && probe.info.there && owner_trusted(&probe.info.status, getpid()))
		fd = flocked_fd(&probe.info, getpid());
	probe_close(&probe);
	return fd;
}

bool probe_locked_outside(const char *path, unsigned kinds)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat file;
	bool locked = false;
	int fd = -1;

	if (host_id()->pidns != FIRST_PIDNS && stat(path, &file) == 0 && (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))
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
