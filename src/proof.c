#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "grips.h"
#include "process.h"
#include "proof.h"
#include "view.h"

static bool of_this_namespace(const struct record *record)
{
	return record->pidns == 0 || record->pidns == here()->pidns;
}

static bool lives_in(pid_t pid, uint64_t pidns)
{
	char path[40];
	struct stat namespace;

	snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)pid);
	return stat(path, &namespace) == 0 && namespace.st_ino == pidns;
}

/* Has MEMBER to do with the process that the record names: is it that one, or the semlock
 * that watches over it? */
static bool is_named(pid_t member, const struct record *record)
{
	struct procfs_stat stat;

	if (!of_this_namespace(record))
		return lives_in(member, record->pidns);
	if (record->pid <= 0 || !process_stat(record->pid, &stat) ||
	    (record->start != 0 && record->start != stat.started))
		return false;
	return member == record->pid || member == stat.parent;
}

static bool is_member(const struct occupant *occupant, pid_t pid)
{
	for (size_t i = 0; i < occupant->nmembers; i++)
		if (occupant->members[i].pid == pid)
			return true;
	return false;
}

bool proof_names(const struct occupant *occupant, const struct record *record)
{
	for (size_t i = 0; i < occupant->nmembers; i++)
		if (is_named(occupant->members[i].pid, record))
			return true;
	return occupant->nmembers == 0 && occupant->taker > 0 && is_named(occupant->taker, record);
}

/* A waiter, too, takes the flock for a moment, to judge a lock that nobody has under flock,
 * and to take it from the dead.  It has taken that itself and nobody inherits it; whereas
 * the holder's is its command's as well, or, when those have ended, was taken by one that has
 * ended, too. */
bool proof_is_holder(const struct occupant *occupant, const struct record *record)
{
	struct procfs_stat stat;

	if (occupant->nmembers > 1 || proof_names(occupant, record))
		return true;
	if (occupant->taker <= 0)
		return occupant->nmembers == 0; /* somebody of another namespace, and unseen */
	if (occupant->nmembers == 0)
		return !process_stat(occupant->taker, &stat);
	return !is_member(occupant, occupant->taker);
}

bool proof_of_other_host(const struct record *record)
{
	return (record->host[0] != '\0' && strcmp(record->host, here()->host) != 0) ||
	       (record->machine[0] != '\0' && strcmp(record->machine, here()->machine) != 0);
}

static bool has_flock(const struct sight *sight, pid_t pid)
{
	struct identity object = {sight->status.st_dev, sight->status.st_ino};
	struct grips grips = {0};
	bool has = false;

	if (sight->object < 0)
		return false;
	grips_of(&grips, pid, &object, 1);
	for (size_t i = 0; i < grips.count; i++)
		has = has || (grips.list[i].locked && grips.list[i].lock.kind == KIND_FLOCK);
	grips_forget(&grips);
	return has;
}

static bool is_recorded(const struct sight *sight, pid_t pid)
{
	const struct record *record = &sight->record;
	struct procfs_stat stat;

	return sight->legible && record->kind == RECORD_FULL && record->pid == pid &&
	       record->start != 0 && record_of_boot(record, here()->boot) &&
	       record->pidns == here()->pidns && !proof_of_other_host(record) &&
	       process_stat(pid, &stat) && stat.started == record->start &&
	       !procfs_ended(stat.state);
}

bool proof_now(const struct lock *lock, pid_t pid)
{
	struct view view;
	struct why ignored;
	bool holds = view_open(&view, lock, &ignored) == 0 && view.sight.there &&
		     (has_flock(&view.sight, pid) || is_recorded(&view.sight, pid));

	view_close(&view);
	return holds;
}
