/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "methods/file/process_alive.h"
#include "sys/process.h"

/* "-" stands for a boot that could not be found out, now or then (no descriptor, no /proc): it is
 * neither the same nor another. */
static bool boot_known(const char *boot)
{
	return boot[0] != '\0' && strcmp(boot, "-") != 0;
}

static bool other_boot(const struct record *record, const struct facts *facts)
{
	return boot_known(record->boot) && boot_known(facts->host_id->boot) && !record_of_boot(record, facts->host_id->boot);
}

/* On a local file system the boot decides, not the host's name: each container has a name of its own,
 * and a name can be changed.  (Copies of a virtual machine share a boot, but no local file system.) */
static bool other_host(const struct record *record, const struct facts *facts)
{
	if (facts->local && record->kind == RECORD_FULL && boot_known(record->boot) && record_of_boot(record, facts->host_id->boot))
		return false;
	if (record->host[0] != '\0' && strcmp(record->host, facts->host_id->host) != 0)
		return true;
	return record->machine[0] != '\0' && strcmp(record->machine, facts->host_id->machine) != 0;
}

static bool life_lasts(const struct life *life)
{
	return life->process == PROCESS_HIDDEN ||
	       (life->process == PROCESS_SEEN && !procfs_ended(life->state));
}

/* The semlock is the holder's parent: a process that started later than the holder has merely reused the semlock's
 * PID.  Where the object is under flock(2), the flock alone tells. */
static bool semlock_is_there(const struct record *record, const struct facts *facts)
{
	const struct life *life = &facts->semlock;

	if (record->flocked || record->semlock <= 0 || !life_lasts(life))
		return false;
	return life->process == PROCESS_HIDDEN || record->start == 0 || life->start <= record->start;
}

/* Rows 6 to 11: the process with the recorded PID.  Row 9 is ALIVE although no process has the flock: semlock was
 * killed and the command has closed its descriptors, or it is between two steps. */
static enum verdict judge_process(const struct record *record, const struct facts *facts)
{
	const struct life *life = &facts->holder;

	if (!life_lasts(life)) /* row 6: gone; row 7: a zombie */
		return DEAD;
	if (life->process == PROCESS_SEEN && record->start != 0 && record->start != life->start)
		return DEAD; /* row 8: another process has reused the PID */
	return ALIVE; /* row 9: same start; row 10: start unknown; row 11: hidden */
}

static bool names_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind == RECORD_EMPTY || record->kind == RECORD_JUNK || record->pid <= 0)
		return true;
	return facts->host_id->pid_max > 0 && record->pid > facts->host_id->pid_max;
}

/* Row 12: no process is named.  After a power failure a file can be there without its contents. */
static enum verdict judge_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind != RECORD_EMPTY)
		return UNKNOWN;
	if (facts->young)
		return ALIVE;
	return facts->before_boot && facts->local ? DEAD : UNKNOWN;
}

/* The first row that fits decides.  Row 1, ALIVE when another process has the object under flock(2),
 * is the caller's: step I3. */
enum verdict record_verdict(const struct record *record, const struct facts *facts)
{
	bool full = record->kind == RECORD_FULL;

	if (full && other_boot(record, facts) && facts->local && !other_host(record, facts))
		return DEAD; /* row 2: of an earlier boot */
	if (other_host(record, facts))
		return UNKNOWN; /* row 3: of another host */
	if (!facts->local && (record->host[0] == '\0' || (full && !record_of_boot(record, facts->host_id->boot))))
		return names_nobody(record, facts) ? judge_nobody(record, facts) : UNKNOWN; /* row 3: of another host, perhaps */
	if (record->pidns != 0 && facts->host_id->pidns == 0 && life_lasts(&facts->holder))
		return ALIVE; /* row 4: without /proc our namespace is not known, and may be that one */
	if (record->pidns != 0 && record->pidns != facts->host_id->pidns)
		return full && record->flocked && facts->local ? DEAD : UNKNOWN; /* row 4, row 5: of another PID namespace */
	if (names_nobody(record, facts))
		return judge_nobody(record, facts); /* row 12: no process is named */
	if (semlock_is_there(record, facts))
		return ALIVE; /* the holder may be dead (rows 6 to 8), but its semlock is about to release the lock */
	return judge_process(record, facts);
}

static void read_life(pid_t pid, struct life *life)
{
	struct procfs_stat stat;

	life->process = PROCESS_GONE;
	if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH))
		return;
	life->process = PROCESS_HIDDEN;
	if (!process_numbers_ours() || !process_stat(pid, &stat))
		return;
	life->process = PROCESS_SEEN;
	life->state = stat.state;
	life->start = stat.started;
}

void record_verdict_ask(const struct record *record, struct facts *facts, pid_t ours)
{
	read_life(record->pid == ours ? 0 : record->pid, &facts->holder);
	read_life(record->semlock == getpid() ? 0 : record->semlock, &facts->semlock);
}

pid_t record_awaited(const struct record *record)
{
	struct life holder;

	read_life(record->pid, &holder);
	return life_lasts(&holder) || record->semlock <= 0 ? record->pid : record->semlock;
}

bool owner_trusted(const struct stat *object, pid_t pid)
{
	struct process process, parent;

	if (object->st_uid == 0)
		return true;
	if (!process_read(pid, &process)) /* once it has ended, no process is signalled by its PID */
		return kill(pid, 0) != 0 && errno == ESRCH;
	return object->st_uid == process.real_user ||
	       (process_read(process.parent, &parent) && object->st_uid == parent.real_user);
}

bool record_trusted(const struct stat *object, pid_t pid)
{
	return (S_ISLNK(object->st_mode) || (object->st_mode & (S_IWGRP | S_IWOTH)) == 0) &&
	       owner_trusted(object, pid);
}
