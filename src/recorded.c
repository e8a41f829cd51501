#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "holds.h"
#include "proof.h"
#include "recorded.h"
#include "scene.h"
#include "view.h"
#include "waiters.h"

/* An empty file that is no older may be about to be written. */
#define YOUNG (2 * SECOND)

/* The command, and the semlock that waits for it to end. */
static bool name_recorded(struct occupant *holder, const struct record *record)
{
	struct process process;
	struct procfs_stat parent;

	if (record->pid <= 0 || !process_lives(record->pid) || (record->pidns != 0 && record->pidns != here()->pidns) ||
	    !process_read(record->pid, &process) ||
	    (record->start != 0 && record->start != process.started))
		return false;
	holder->process = process;
	holder->since = process_start(process.started);
	holder->watcher = process_stat(process.parent, &parent) &&
			  strcmp(parent.name, "semlock") == 0 ? process.parent : 0;
	holder->since_exact = holder->watcher != 0;
	return true;
}

/* Its command has ended: then the semlock that the record names is the one who still has it. */
static bool name_semlock(struct occupant *holder, const struct record *record)
{
	struct process process;

	if (record->semlock <= 0 || !process_read(record->semlock, &process))
		return false;
	holder->process = process;
	holder->since = process_start(process.started);
	holder->watcher = record->semlock;
	holder->lets_go = true;
	return true;
}

static enum verdict judge(const struct sight *sight)
{
	int64_t age = (int64_t)time(NULL) * SECOND - (int64_t)sight->status.st_mtim.tv_sec * SECOND;
	struct facts facts = {.local = sight->local, .here = here()};

	if (!sight->legible)
		return UNKNOWN;
	if (sight->record.kind == RECORD_EMPTY && S_ISREG(sight->status.st_mode)) {
		facts.young = age > -YOUNG && age < YOUNG;
		facts.before_boot = facts.here->booted > 0 &&
				    sight->status.st_mtim.tv_sec < facts.here->booted;
	}
	liveness_ask(&sight->record, &facts, 0);
	return liveness(&sight->record, &facts);
}

static enum doubt doubt_about(const struct sight *sight, enum verdict verdict)
{
	const struct record *record = &sight->record;

	if (!sight->legible)
		return DOUBT_ILLEGIBLE;
	if (verdict == DEAD)
		return DOUBT_NONE;
	if (record->pid <= 0 || (here()->pid_max > 0 && record->pid > here()->pid_max))
		return DOUBT_NOBODY;
	if (verdict == ALIVE)
		return record->start != 0 ? DOUBT_NONE : DOUBT_NUMBER;
	return proof_of_other_host(record) || !sight->local ? DOUBT_HOST : DOUBT_NAMESPACE;
}

static void leave_nameless(struct occupant *holder, const struct record *record)
{
	holder->process.pid = record->pid;
	holder->process.user = record->kind == RECORD_FULL ? record->uid : (uid_t)-1;
	if (holder->doubt == DOUBT_HOST)
		snprintf(holder->host, sizeof holder->host, "%s",
		    record->host[0] == '\0' ? "?" : record->host);
}

/* It is what it says of itself; unless somebody has it under FLOCK, whom it does not name: a
 * waiter who judges it, or takes it from the dead, or somebody else. */
static void add_recorded(struct occupants *found, const struct sight *sight, bool flocked)
{
	struct occupant *holder = occupants_add(found);

	if (holder == NULL)
		return;
	found->holders = found->count;
	holder->verdict = flocked && !sight->legible ? ALIVE : judge(sight);
	if (holder->verdict == ALIVE && name_recorded(holder, &sight->record)) {
		holder->doubt = doubt_about(sight, ALIVE);
		occupants_join(found, holder, sight->record.pid, -1);
		return;
	}
	if (holder->verdict == ALIVE && sight->legible)
		holder->verdict = judge(sight); /* it may have ended just now */
	if (holder->verdict == ALIVE && name_semlock(holder, &sight->record))
		return;
	holder->doubt = doubt_about(sight, holder->verdict);
	if (holder->verdict == ALIVE && holder->doubt == DOUBT_NONE)
		holder->doubt = DOUBT_NUMBER; /* it is hidden from us */
	if (holder->verdict == DEAD && flocked) {
		holder->verdict = UNKNOWN;
		holder->doubt = DOUBT_FLOCK;
	}
	leave_nameless(holder, &sight->record);
}

static void describe(struct occupant *holder, const struct sight *sight)
{
	holder->touched = (int64_t)sight->status.st_mtim.tv_sec * SECOND;
	if (sight->record.since == 0)
		return;
	holder->since = sight->record.since * SECOND;
	holder->since_exact = true;
}

/* Whichever way the kernel has them sleep, it is one lock that all of them are about. */
static void describe_all(struct occupants *found, const struct method *method)
{
	for (size_t i = 0; i < found->count; i++) {
		found->list[i].method = method->name;
		found->list[i].mode = MODE_EXCLUSIVE;
		found->list[i].kind = 0;
	}
}

/* Who has it under flock, called by what the record says, if that is so.  Where we may not look
 * at the flock's owners, who that is rests on the record alone. */
static void name_flocked(struct occupants *found, const struct sight *sight)
{
	struct occupant *holder = &found->list[0];

	if (!proof_names(holder, &sight->record) || !name_recorded(holder, &sight->record))
		return;
	found->unseen = false;
	if (holder->nmembers > 0)
		return;
	holder->doubt = doubt_about(sight, ALIVE);
	occupants_join(found, holder, sight->record.pid, -1);
}

/* Of those who have it under flock, the holder alone.  Returns false when there were others. */
static bool keep_holder(struct occupants *found, const struct record *record)
{
	size_t all = found->count;

	for (size_t i = found->count; i > 0; i--)
		if (!proof_is_holder(&found->list[i - 1], record))
			occupants_drop(found, i - 1);
	found->holders = found->count;
	return found->count == all;
}

/* Returns 1, 0 when it has to be looked at again, or -1 with WHY filled. */
static int look_once(struct occupants *found, const struct view *view, struct why *why)
{
	const struct sight *sight = &view->sight;
	struct scene scene;
	bool steady = true;

	if (sight->there && sight->record.kind == RECORD_ABSENT)
		return why_say(why, TROUBLE_OPEN, "is a directory of other files, and no lock");
	if (scene_take_object(&scene, &view->lock, sight->object, why) != 0) {
		scene_forget(&scene);
		return -1;
	}
	holds_add(found, &scene, KIND_FLOCK);
	if (sight->object >= 0)
		steady = keep_holder(found, &sight->record);
	if (found->count > 0) {
		name_flocked(found, sight);
	} else if (sight->there) {
		add_recorded(found, sight, !steady);
		steady = steady && sight->legible; /* /proc/locks can leave one out that others move past */
	}
	if (found->count > 0)
		describe(&found->list[0], sight);
	waiters_add(found, &scene, KIND_FLOCK);
	describe_all(found, view->lock.method);
	found->failed = found->failed || scene.grips.failed;
	steady = steady && (!found->unseen || scene.grips.blind);
	scene_forget(&scene);
	return steady;
}

int recorded_look(struct occupants *found, const struct lock *lock, struct why *why)
{
	struct view view;
	int seen = 0;

	for (int tries = 0; tries < 4 && seen == 0; tries++) {
		occupants_forget(found);
		seen = view_open(&view, lock, why) == 0 ? look_once(found, &view, why) : -1;
		view_close(&view);
	}
	return seen < 0 ? -1 : 0;
}

bool recorded_holds(const struct lock *lock, pid_t pid)
{
	struct occupants found = {0};
	struct why ignored;
	bool holds = false;

	if (recorded_look(&found, lock, &ignored) == 0 && found.holders > 0 &&
	    found.list[0].verdict == ALIVE && found.list[0].doubt == DOUBT_NONE)
		for (size_t i = 0; i < found.list[0].nmembers; i++)
			holds = holds || found.list[0].members[i].pid == pid;
	occupants_forget(&found);
	return holds && proof_now(lock, pid);
}
