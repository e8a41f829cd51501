/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "methods/server/lease.h"
#include "methods/server/locksmith.h"
#include "methods/server/scheme.h"
#include "methods/server/server.h"
#include "methods/server/server_inherited.h"
#include "owners/sources.h"
#include "report/text.h"

/* Write field KEY of ANSWER, one word, into TEXT, made safe to print. */
static void field_text(const char *answer, const char *key, char *text, size_t size)
{
	const char *value = locksmith_field(answer, key);

	text[0] = '\0';
	if (value != NULL)
		text_printable(text, size, value, strcspn(value, " "), size - 1);
}

/* Return the number in field KEY of ANSWER, from 0 to MOST; -1: none. */
static long long field_number(const char *answer, const char *key, long long most)
{
	long long value;

	return locksmith_number(answer, key, &value) && value >= 0 && value <= most ? value : -1;
}

struct child_search {
	pid_t parent;
	pid_t found; /* 0: none */
};

static bool see_child(pid_t pid, void *context)
{
	struct child_search *search = context;
	struct procfs_stat seen;

	if (process_stat(pid, &seen) && seen.parent == search->parent &&
	    !procfs_ended(seen.state) && strcmp(seen.name, OBSERVER_NAME) != 0 &&
	    !name_is_helper(seen.name))
		search->found = pid;
	return search->found == 0;
}

/* The child of SEMLOCK that is neither a helper nor an observer: its command or, under a subreaper,
 * a semlock; 0: none.  If SEMLOCK waits, the result may be an orphan of its helper, or a child that
 * is about to be the observer. */
static pid_t child_of(pid_t semlock)
{
	struct child_search search = {.parent = semlock};

	process_children(semlock, see_child, &search);
	return search.found;
}

/* If the owner is on this host, take its command from /proc: until a helper renews its lock, the
 * server knows only semlock's PID, and some servers know no command.  A PID that belongs neither to
 * a semlock nor to a child of one has been reused. */
static void name_command(struct owner *owner)
{
	struct process above, process;
	pid_t child;
	char host[65] = "";

	gethostname(host, sizeof host - 1);
	if (owner->process.pid <= 0 || strcasecmp(host, owner->host) != 0 ||
	    !process_read(owner->process.pid, &process) || !process_read(process.parent, &above))
		return;
	while (name_is_semlock(process.name)) {
		child = child_of(process.pid);
		above = process;
		if (child == 0 || !process_read(child, &process))
			return;
	}
	if (name_is_semlock(above.name)) {
		owner->process = process;
		owner->supervisor = above.pid;
	}
}

/* Return the mode that WORD names ("": unknown).  Any other word means a slot: a helper may say
 * "slots". */
static enum owner_mode mode_named(const char *word)
{
	enum owner_mode mode = word[0] == '\0' ? MODE_UNKNOWN : MODE_EXCLUSIVE;

	while (mode != MODE_UNKNOWN && mode != MODE_SLOT && strcmp(word, mode_text(mode)) != 0)
		mode++;
	return mode;
}

void server_owners_add(struct owners *found, const char *method, const char *text, bool waits)
{
	struct owner *owner = owners_add(found);
	long long slot = field_number(text, FIELD_SLOT, INT_MAX),
		  pid = field_number(text, FIELD_PID, INT32_MAX);
	long long since = field_number(text, FIELD_SINCE, INT64_MAX / SECOND);
	/* a note may contain blanks, so it comes last */
	const char *note = locksmith_field(text, FIELD_NOTE), *command;
	char mode[16];

	if (owner == NULL)
		return;
	field_text(text, FIELD_MODE, mode, sizeof mode);
	owner->waits = waits;
	owner->method = method;
	owner->mode = mode_named(mode);
	if (slot >= 0)
		owner->mode = MODE_SLOT;
	owner->slot = (int)slot;
	owner->process.user = (uid_t)-1;
	owner->process.pid = pid > 0 ? (pid_t)pid : 0;
	field_text(text, FIELD_HOST, owner->host, sizeof owner->host);
	if (owner->host[0] == '\0')
		snprintf(owner->host, sizeof owner->host, "?");
	owner->since = since > 0 ? since * SECOND : 0;
	owner->since_exact = since > 0;
	if (note != NULL) {
		command = server_note_read(note, owner->note);
		snprintf(owner->process.command, sizeof owner->process.command, "%s", command);
		owner->process.command_length = *command == '\0' ? 0 : strlen(command) + 1;
	}
	if (waits)
		return;
	name_command(owner);
	found->holders++;
}

struct question {
	struct owners *found;
	const char *method;
};

static void hear_owner(const char *line, void *context)
{
	struct question *question = context;
	const char *text = text_after_word(line, SAYS_WHO);

	if (text != NULL)
		server_owners_add(question->found, question->method, text,
		    strncmp(text, "state=waits", 11) == 0);
}

int server_owners_ask(struct owners *found, const struct lock *lock, struct error *error)
{
	struct question question = {found, lock->spec->method->name};
	int result = server_ask(lock, hear_owner, &question, error);

	if (result != 0)
		owners_forget(found);
	return result;
}

/* Does a thread of PID watch a lease?  It does so from before the command starts until the lock is
 * released, also after the command has ended (--min-hold). */
static bool keeps_lease(pid_t pid)
{
	char path[64], name[32];
	struct dirent *entry;
	bool found = false;
	DIR *threads;

	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	threads = opendir(path);
	while (threads != NULL && !found && (entry = readdir(threads)) != NULL) {
		snprintf(path, sizeof path, "/proc/%ld/task/%.16s/comm", (long)pid, entry->d_name);
		found = process_file(path, name, sizeof name) > 0 &&
		        strcmp(name, LEASE_THREAD "\n") == 0;
	}
	if (threads != NULL)
		closedir(threads);
	return found;
}

void server_owners_see(struct owners *found, const char *url, pid_t semlock, bool waits)
{
	const bool leased = keeps_lease(semlock);
	const pid_t command = leased ? child_of(semlock) : 0;
	struct owner *owner = leased != waits ? owners_add(found) : NULL;

	if (owner == NULL)
		return;
	owner->waits = waits;
	owner->method = server_method(url)->name;
	process_read(command > 0 ? command : semlock, &owner->process);
	owner->supervisor = command > 0 ? semlock : 0;
	owner->since = process_start(owner->process.started);
	owner->since_exact = true;
	found->holders += !waits;
}

/* ---- server_source ---- */

/* Do not ask the server: use its last answer about a busy lock. */
static enum searched server_add(struct owners *found, const struct lock *lock,
    struct search *search, struct error *error)
{
	(void)search;
	(void)error;
	if (lock->server.text != NULL)
		server_owners_add(found, lock->spec->method->name, lock->server.text, false);
	return SEARCHED_WHOLE;
}

/* No process is signalled for a lock on a server. */
static bool server_verify(const struct lock *lock, pid_t pid, struct fd_walk *walk)
{
	(void)walk;
	(void)lock;
	(void)pid;
	return false;
}

static enum nesting server_nesting(const struct lock *lock, int *fd)
{
	enum inherited held;

	*fd = server_inherited(lock->spec->name, &held);
	if (*fd < 0)
		return NESTING_NONE;
	if (held == INHERITED_EXCLUSIVE || (held == INHERITED_SLOT && lock->spec->slots > 0))
		return NESTING_COVERS;
	return held == INHERITED_SHARED && lock->spec->slots == 0 && lock->spec->mode == SHARED
	           ? NESTING_AGAIN
	           : NESTING_LESS;
}

const struct source server_source = {server_add, server_verify, server_nesting};
