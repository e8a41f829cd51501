#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "methods/file/process_alive.h"
#include "sys/process.h"

static bool same_boot(const struct record *record, const struct facts *facts)
{
	return record_of_boot(record, facts->host_id->boot);
}

/* "-" is what stands for a boot whose name could not be found out, today or then: no file
 * could be opened, there was no /proc.  Then it says nothing, least of all that one is dead. */
static bool boot_known(const char *boot)
{
	return boot[0] != '\0' && strcmp(boot, "-") != 0;
}

static bool other_boot(const struct record *record, const struct facts *facts)
{
	return boot_known(record->boot) && boot_known(facts->host_id->boot) && !same_boot(record, facts);
}

/* Whatever it is called: a container has a name of its own, the next one another, and a name can be
 * changed.  A boot is one kernel's, and so is a local file system.  (Copies of a virtual machine
 * have one boot, too, and no local file system in common.) */
static bool other_host(const struct record *record, const struct facts *facts)
{
	if (facts->local && record->kind == RECORD_FULL && boot_known(record->boot) && same_boot(record, facts))
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

/* It is the parent, and has not started later; who has, got the number after it. */
static bool semlock_is_there(const struct record *record, const struct facts *facts)
{
	const struct life *life = &facts->semlock;

	if (record->semlock <= 0 || !life_lasts(life))
		return false;
	return life->process == PROCESS_HIDDEN || record->start == 0 || life->start <= record->start;
}

/* Rows 6 to 11: the process with that number.  Row 9 is ALIVE although its flock is free:
 * semlock was killed and the command has closed its descriptors, or it is between two steps. */
static enum verdict judge_process(const struct record *record, const struct facts *facts)
{
	const struct life *life = &facts->holder;

	if (!life_lasts(life)) /* 6: gone, 7: a zombie */
		return DEAD;
	if (life->process == PROCESS_SEEN && record->start != 0 && record->start != life->start)
		return DEAD; /* 8: another process has got the number */
	return ALIVE; /* 9, 10: that is all there is to know; 11: it is there, whoever it is */
}

static bool names_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind == RECORD_EMPTY || record->kind == RECORD_JUNK || record->pid <= 0)
		return true;
	return facts->host_id->pid_max > 0 && record->pid > facts->host_id->pid_max;
}

/* Row 12.  After a power failure a file can be there and its contents not. */
static enum verdict judge_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind != RECORD_EMPTY)
		return UNKNOWN;
	if (facts->young)
		return ALIVE;
	return facts->before_boot && facts->local ? DEAD : UNKNOWN;
}

/* The rows of the table, in order; the first that fits decides. */
enum verdict record_verdict(const struct record *record, const struct facts *facts)
{
	bool full = record->kind == RECORD_FULL;

	if (full && other_boot(record, facts) && facts->local && !other_host(record, facts))
		return DEAD; /* 2 */
	if (other_host(record, facts))
		return UNKNOWN; /* 3 */
	if (!facts->local && (record->host[0] == '\0' || (full && !same_boot(record, facts))))
		return names_nobody(record, facts) ? judge_nobody(record, facts) : UNKNOWN; /* 3 */
	if (record->pidns != 0 && record->pidns != facts->host_id->pidns)
		return full && record->flocked && facts->local ? DEAD : UNKNOWN; /* 4, 5 */
	if (names_nobody(record, facts))
		return judge_nobody(record, facts); /* 12 */
	if (semlock_is_there(record, facts))
		return ALIVE; /* 6 to 8: the holder may be dead, but somebody is about to let go */
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

void record_verdict_ask(const struct record *record, struct facts *facts, pid_t nobody)
{
	read_life(record->pid == nobody ? 0 : record->pid, &facts->holder);
	read_life(record->semlock == getpid() ? 0 : record->semlock, &facts->semlock);
}

bool owner_trusted(const struct stat *object, pid_t pid)
{
	struct process process, parent;

	return process_read(pid, &process) &&
	       (object->st_uid == 0 || object->st_uid == process.real_user ||
		   (process_read(process.parent, &parent) && object->st_uid == parent.real_user));
}

bool record_trusted(const struct stat *object, pid_t pid)
{
	return (S_ISLNK(object->st_mode) || (object->st_mode & (S_IWGRP | S_IWOTH)) == 0) &&
	       owner_trusted(object, pid);
}
