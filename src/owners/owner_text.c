/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "owners/hold_id.h"
#include "owners/sources.h"
#include "report/text.h"

void moment_text(int64_t moment, char *text, size_t size)
{
	time_t then = (time_t)(moment / SECOND), now = time(NULL);
	struct tm when, today;

	if (localtime_r(&then, &when) == NULL || localtime_r(&now, &today) == NULL)
		snprintf(text, size, "?");
	else if (when.tm_year != today.tm_year)
		strftime(text, size, "%Y-%m-%d", &when);
	else if (when.tm_yday != today.tm_yday)
		strftime(text, size, "%m-%d %H:%M", &when);
	else
		strftime(text, size, "%H:%M:%S", &when);
}

void lock_text(const struct lock *lock, char *text, size_t size)
{
	char link[32], path[PATH_MAX];
	ssize_t length;

	if (lock->spec->name != NULL) {
		snprintf(text, size, "%s", lock->spec->name);
		return;
	}
	snprintf(link, sizeof link, "/proc/self/fd/%d", lock->fd);
	length = readlink(link, path, sizeof path);
	snprintf(text, size, "descriptor %d", lock->fd);
	if (length > 0)
		snprintf(text + strlen(text), size - strlen(text), " (%.*s)", (int)length, path);
}

void age_text(int64_t moment, bool in_column, char *text, size_t size)
{
	static const struct {
		long long most, seconds;
		char name[5], letter[2];
	} units[] = {{100, 1, " s", "s"}, {100, 60, " min", "m"}, {48, 3600, " h", "h"},
	    {LLONG_MAX, 86400, " d", "d"}};
	const long long age = (clock_realtime() - moment) / SECOND;
	size_t i = 0;

	while (age / units[i].seconds >= units[i].most)
		i++;
	if (age < 0)
		text[0] = '\0';
	else
		snprintf(text, size, "%lld%s", age / units[i].seconds,
		    in_column ? units[i].letter : units[i].name);
}

/* "12:01:07, 63 s" */
static void since_text(const struct owner *owner, const struct owner_room *room, char *text,
    size_t size)
{
	char age[32] = "";

	moment_text(owner->since, text, size);
	if (room->age)
		age_text(owner->since, false, age, sizeof age);
	if (age[0] != '\0')
		snprintf(text + strlen(text), size - strlen(text), ", %s%s", age,
		    owner->since_exact ? "" : " ago");
}

/* "held by 4242 on web7 (rsync -a /srv) since 12:01:07, 63 s" */
static void process_text(const struct owner *owner, const struct owner_room *room, char *text,
    size_t size)
{
	char host[65], command[256] = "", since[64] = "", words[340];
	const char *comma;
	size_t used;

	text_printable(host, sizeof host, owner->host, strlen(owner->host), room->host);
	if (owner->process.command_length > 0 && room->command > 0)
		process_command(&owner->process, command, sizeof command, room->command);
	if (owner->since != 0 && room->since)
		since_text(owner, room, since, sizeof since);
	comma = command[0] != '\0' ? ", " : "";
	if (since[0] == '\0' || owner->since_exact)
		snprintf(words, sizeof words, "%s", command);
	else
		snprintf(words, sizeof words, "%s%sstarted %s", command, comma, since);

	used = (size_t)snprintf(text, size, "held by %ld", (long)owner->process.pid);
	if (host[0] != '\0')
		used += (size_t)snprintf(text + used, size - used, " on %s", host);
	if (words[0] != '\0')
		used += (size_t)snprintf(text + used, size - used, " (%s)", words);
	if (since[0] != '\0' && owner->since_exact)
		snprintf(text + used, size - used, " since %s", since);
}

/* owner_text() for a lock on a server. */
static void server_text(const struct owner *owner, const struct owner_room *room, char *text,
    size_t size)
{
	const struct process *process = &owner->process;

	if (process->pid == 0) { /* no mode: semlock waits for the server itself */
		snprintf(text, size, "%s%s", owner->mode == MODE_UNKNOWN ? "" : "held by ",
		    process->command_length > 0 ? process->command : "somebody");
		return;
	}
	process_text(owner, room, text, size);
}

/* VERDICT is shown instead of the command.  BEFORE, the PID and BEHIND, in this order, say why the
 * holder cannot be signalled.  If BEHIND is NULL, BEFORE alone says it. */
static const struct {
	const char *verdict, *before, *behind;
} doubts[] = {
    [DOUBT_NONE] = {"", "", NULL},
    [DOUBT_HOST] = {"", "process ", " on host "}, /* the host follows */
    [DOUBT_MACHINE] = {"(on another machine)", "the holder is on another machine", NULL},
    [DOUBT_NAMESPACE] = {"(in another PID namespace)", "process ",
	" of another PID namespace is not within reach"},
    [DOUBT_NOBODY] = {"(not named in the lock)", "the lock names no process", NULL},
    [DOUBT_EARLIER] = {"(of an earlier holder, perhaps)", "the lock names process ",
	", but that may be an earlier holder"},
    [DOUBT_RANGE] = {"(no such number on this system)", "the lock names process ",
	", which is more than kernel.pid_max here"},
    [DOUBT_ILLEGIBLE] = {"(cannot be read)", "its record cannot be read: permission denied", NULL},
    [DOUBT_FLOCK] = {"(ended; another has its flock)", "process ",
	" has ended, but another process holds a flock on the lock"},
    [DOUBT_OWNER] = {"(cannot be seen)", "the lock names process ",
	", and another user may have written that"},
    [DOUBT_NUMBER] = {"(cannot be seen)", "the lock names process ",
	", and nothing proves that it is still the same"},
};

void verdict_text(const struct owner *holder, char *text, size_t size)
{
	if (holder->verdict == UNKNOWN && holder->doubt == DOUBT_HOST)
		snprintf(text, size, "(on host %.21s)", holder->host);
	else if (holder->verdict == DEAD)
		snprintf(text, size, "(has ended; free to take)");
	else if (holder->verdict == UNKNOWN || holder->process.command_length == 0)
		snprintf(text, size, "%s", doubts[holder->doubt].verdict);
	else
		text[0] = '\0';
}

void doubt_text(const struct owner *holder, char *text, size_t size)
{
	const char *before = doubts[holder->doubt].before, *behind = doubts[holder->doubt].behind;

	if (behind == NULL)
		snprintf(text, size, "%s", before);
	else if (holder->doubt == DOUBT_HOST)
		snprintf(text, size, "%s%ld%s%s is not within reach", before,
		    (long)holder->process.pid, behind, holder->host);
	else
		snprintf(text, size, "%s%ld%s", before, (long)holder->process.pid, behind);
}

/* owner_text() for a lock made of files whose holder is not known to be alive. */
static void record_text(const struct owner *holder, char *text, size_t size)
{
	char doubt[200], touched[32];

	moment_text(holder->touched, touched, sizeof touched);
	if (holder->verdict == DEAD) {
		snprintf(text, size, "left behind by process %ld, which has ended",
		    (long)holder->process.pid);
		return;
	}
	doubt_text(holder, doubt, sizeof doubt);
	snprintf(text, size, "held, or left behind: %s; last sign of life %s (--stale uses it)",
	    doubt, touched);
}

bool owner_text(const struct owners *found, const struct owner_room *room, char *text, size_t size)
{
	const struct owner *first = found->list;
	char note[NOTE_SIZE];
	bool unseen;
	size_t used;

	if (found->holders == 0)
		return false;
	unseen = first->process.pid == 0 || first->process.command_length == 0;
	if (first->verdict != ALIVE) {
		record_text(first, text, size);
	} else if (first->host[0] != '\0') {
		server_text(first, room, text, size);
	} else if (first->doubt == DOUBT_NOBODY && first->process.pid == 0) {
		snprintf(text, size, "held; the lock names no holder");
	} else if (unseen && first->doubt == DOUBT_MACHINE) {
		snprintf(text, size, "held on another machine");
	} else if (unseen && found->seen == SEEN_CUT) {
		snprintf(text, size, "held; its holder was not looked for in all processes");
	} else if (unseen && first->taker > 0) {
		snprintf(text, size, "held by a process that cannot be seen (process %ld took it)",
		    (long)first->taker);
	} else if (unseen) {
		snprintf(text, size, "held by a process that cannot be seen");
	} else if (first->process.pid == found->asker) {
		snprintf(text, size, "held by this process, which has inherited the lock");
	} else {
		process_text(first, room, text, size);
	}
	used = strlen(text);
	if (found->holders > 1)
		snprintf(text + used, size - used, " and %zu more", found->holders - 1);
	used = strlen(text);
	text_printable(note, sizeof note, first->note, strlen(first->note), room->note);
	if (note[0] != '\0')
		snprintf(text + used, size - used, ", \"%s\"", note);
	return true;
}

bool owner_find_hold(const struct owner *owner, char id[HOLD_ID_SIZE], uid_t *user)
{
	const pid_t pid = owner->waits ? owner->process.pid : owner->supervisor;
	struct process semlock = owner->process;

	if (owner->host[0] != '\0' || pid <= 0)
		return false;
	if (!owner->waits && !process_read(pid, &semlock))
		return false;
	if (user != NULL)
		*user = semlock.user;
	return hold_id_find(&semlock, id);
}

/* If OWNER holds its lock by a hold in the background that this process may end, write the ID of
 * that hold into ID.  Else return false. */
static bool find_ours_to_release(const struct owner *owner, char id[HOLD_ID_SIZE])
{
	uid_t user;

	return owner_find_hold(owner, id, &user) && (geteuid() == 0 || user == geteuid());
}

void way_out_text(const struct owners *found, const struct lock *lock, char *text, size_t size)
{
	const struct owner *first = found->list;
	const char *name = lock->spec->name;
	char id[HOLD_ID_SIZE], word[PATH_MAX];

	if (name != NULL)
		text_for_shell(word, sizeof word, name);
	if (name == NULL)
		text[0] = '\0';
	else if (found->holders > 0 && find_ours_to_release(first, id))
		snprintf(text, size, "; semlock --release=%s %s ends this hold", id, word);
	else
		snprintf(text, size, "; semlock --who %s says more", word);
}

static bool same_command(const struct process *one, const struct process *other)
{
	return one->command_length == other->command_length &&
	       memcmp(one->command, other->command, one->command_length) == 0;
}

/* May SPEAKER claim to hold a lock for process PID?  Any process can take a placeholder's name,
 * with the PID of an innocent process in it.  Believe SPEAKER only if it is root's, or its user is
 * PID's real user.  (Do not believe a setuid program, whose name its caller chose.) */
static bool may_speak_for(const struct process *speaker, pid_t pid)
{
	struct process other;

	if (speaker->user == (uid_t)-1 || speaker->user != speaker->real_user)
		return false;
	return speaker->user == 0 ||
	       (process_read(pid, &other) && other.real_user == speaker->user);
}

pid_t owner_caller_of_hold(const struct owner *holder)
{
	const char *name = holder->process.name;
	const size_t length = sizeof PLACEHOLDER_NAME - 1;
	long caller;

	if (strncmp(name, PLACEHOLDER_NAME, length) != 0)
		return 0;
	caller = text_number(name + length, INT_MAX);
	if (process_is_below(holder->process.pid))
		return 1; /* in that PID namespace, the number means another process */
	return caller > 1 && may_speak_for(&holder->process, (pid_t)caller) ? (pid_t)caller : 1;
}

/* Is PROCESS the one that asks, or its subreaper?  (With -o, semlock is two processes.) */
static bool is_asker(const struct process *process, pid_t asker)
{
	struct process asking;

	return process->pid == asker ||
	       (process_read(asker, &asking) && process->pid == asking.parent &&
		   same_command(process, &asking));
}

void owners_name_callers(struct owners *found, pid_t asker)
{
	struct owner *holder;
	struct process caller;
	pid_t pid;

	found->asker = asker;
	for (size_t i = 0; i < found->holders; i++) {
		holder = &found->list[i];
		pid = is_asker(&holder->process, asker) ? holder->supervisor
		                                        : owner_caller_of_hold(holder);
		if (pid <= 1 || !process_read(pid, &caller))
			continue;
		holder->process = caller;
		if (holder->supervisor == pid)
			holder->supervisor = 0;
	}
}

bool owners_for_text(struct owners *found, const struct lock *lock, struct search_terms *terms)
{
	struct error ignored;

	if (owners_look(found, lock, terms, &ignored) != 0)
		return false;
	for (size_t i = found->holders; i > 0; i--)
		if (!lock_overlaps(lock, found->list[i - 1].first, found->list[i - 1].last))
			owners_drop(found, i - 1);
	owners_name_callers(found, terms->asker == 0 ? getpid() : terms->asker);
	return true;
}
