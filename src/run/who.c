/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/other_semlock.h"
#include "methods/server/scheme.h"
#include "methods/table.h"
#include "owners/hold_id.h"
#include "owners/owners.h"
#include "report/text.h"
#include "run/notes.h"
#include "run/who.h"
#include "sys/terminal.h"

enum {
	USER_COLUMNS = 8,
	USUAL_WIDTH = 80,
	MOST_COLUMNS = 1000 /* of a command */
};

/* The columns of the table, except COMMAND, which takes the rest of the line. */
enum column { RANK, PID, USER, MODE, SINCE, AGE, NCOLUMNS };
static const struct {
	const char *title;
	int width; /* as for printf(3), negative: aligned left; a blank follows each */
} columns_of[NCOLUMNS] = {
    [RANK] = {"", 4},
    [PID] = {"PID", 8},
    [USER] = {"USER", -USER_COLUMNS},
    [MODE] = {"MODE", -9},
    [SINCE] = {" SINCE", -12},
    [AGE] = {"FOR", 4},
};

struct table {
	size_t width;
	bool fits; /* on a terminal: cut lines to WIDTH */
	bool shown[NCOLUMNS];
	char here[PATH_MAX]; /* this process's directory; "": unknown */
};

/* The columns that are left for the command; one stays blank at the end. */
static size_t command_columns(const struct table *table)
{
	size_t used = 1;

	for (int i = 0; i < NCOLUMNS; i++)
		used += table->shown[i] ? (size_t)abs(columns_of[i].width) + 1 : 0;
	return table->width > used ? table->width - used : 0;
}

/* As wide as the terminal; else $COLUMNS, but 80 at least.  On a narrow terminal the columns that
 * say least make room for the command. */
static struct table make_table(void)
{
	enum { ROOM = 12 /* for a command */ };
	static const enum column dispensable[] = {USER, AGE, MODE, SINCE};
	const char *text = getenv("COLUMNS");
	const long wished = text == NULL ? -1 : text_number(text, MOST_COLUMNS);
	struct table table = {.width = terminal_columns(STDOUT_FILENO)};

	if (getcwd(table.here, sizeof table.here) == NULL)
		table.here[0] = '\0';
	table.fits = table.width > 0;
	if (!table.fits)
		table.width = wished < USUAL_WIDTH ? USUAL_WIDTH : (size_t)wished;
	if (table.width > MOST_COLUMNS)
		table.width = MOST_COLUMNS;
	for (int i = 0; i < NCOLUMNS; i++)
		table.shown[i] = true;
	for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable; i++)
		if (command_columns(&table) < ROOM)
			table.shown[dispensable[i]] = false;
	return table;
}

static void print_cut(const struct table *table, const char *line)
{
	char text[6 * MOST_COLUMNS];
	const size_t columns = table->fits ? table->width - 1 : sizeof text;

	text_printable(text, sizeof text, line, strlen(line), columns);
	puts(text);
}

/* Print CELLS, one for each column, and COMMAND. */
static void print_cells(const struct table *table, const char *const cells[NCOLUMNS],
    const char *command)
{
	char row[6 * MOST_COLUMNS];
	size_t used = 0;

	for (int i = 0; i < NCOLUMNS; i++)
		if (table->shown[i])
			used += (size_t)snprintf(row + used, sizeof row - used, "%*s ",
			    columns_of[i].width, cells[i]);
	snprintf(row + used, sizeof row - used, "%s", command);
	print_cut(table, row);
}

/* Most waiters belong to one user: do not look up the same user twice in a row. */
static void name_user(uid_t user, char *name, size_t size)
{
	static char known[256];
	static uid_t known_user;
	const struct passwd *entry;

	if (known[0] == '\0' || user != known_user) {
		entry = getpwuid(user);
		if (entry == NULL)
			snprintf(known, sizeof known, "%lu", (unsigned long)user);
		else
			snprintf(known, sizeof known, "%s", entry->pw_name);
		known_user = user;
	}
	text_printable(name, size, known, strlen(known), size - 1);
}

static void user_text(const struct process *process, char *name, size_t size)
{
	if (process->pid == 0 || process->user == (uid_t)-1)
		snprintf(name, size, "?");
	else
		name_user(process->user, name, size);
}

static void mode_column(const struct owner *owner, char *name, size_t size)
{
	const char *word = mode_text(owner->mode);

	if (owner->mode == MODE_SLOT && owner->slot >= 0)
		snprintf(name, size, owner->last_slot > owner->slot ? "slot %d-%d" : "slot %d",
		    owner->slot, owner->last_slot);
	else
		snprintf(name, size, "%s", word == NULL ? "-" : word);
}

/* ">12:01:07": the process started then, and its lock is younger. */
static void since_column(const struct owner *owner, char *name, size_t size)
{
	snprintf(name, size, "%s", owner->since_exact ? " " : ">");
	if (owner->since == 0)
		snprintf(name, size, " -");
	else
		moment_text(owner->since, name + 1, size - 1);
}

/* "12m", or "<12m": the lock is younger than its process. */
static void age_column(const struct owner *owner, char *text, size_t size)
{
	char age[12] = "";

	if (owner->since != 0)
		age_text(owner->since, true, age, sizeof age);
	snprintf(text, size, "%s%s", age[0] == '\0' || owner->since_exact ? "" : "<", age);
}

/* For a waiter, show the command that it will start, not the semlock or flock(1) that waits. */
static void process_text(const struct owner *owner, char *text, size_t size, size_t columns)
{
	const struct process *process = &owner->process;
	struct other_semlock other;
	struct process own;

	if (owner->waits && (name_is_semlock(process->name) || name_is_flock(process->name)) &&
	    other_semlock_read(process->command, process->command_length, &other) &&
	    other.command != NULL) {
		own = *process;
		own.command_length =
		    process->command_length - (size_t)(other.command - process->command);
		memcpy(own.command, other.command, own.command_length);
		process_command(&own, text, size, columns);
	} else {
		process_command(process, text, size, columns);
	}
}

static void command_text(const struct owner *owner, size_t columns, char *name, size_t size)
{
	char words[4 * MOST_COLUMNS];

	verdict_text(owner, words, sizeof words);
	if (words[0] != '\0')
		;
	else if (owner->process.pid == 0 && owner->process.command_length > 0)
		text_printable(words, sizeof words, owner->process.command,
		    strlen(owner->process.command), columns);
	else if (owner->process.pid == 0 && owner->taker > 0)
		snprintf(words, sizeof words, "(cannot be seen; %ld took it)", (long)owner->taker);
	else if (owner->process.pid == 0)
		snprintf(words, sizeof words, "(cannot be seen)");
	else
		process_text(owner, words, sizeof words, columns);
	if (owner->host[0] == '\0' || owner->verdict != ALIVE)
		snprintf(name, size, "%s", words);
	else
		snprintf(name, size, words[0] == '\0' ? "on %s" : "on %s: %s", owner->host, words);
}

/* Write OWNER's directory into TEXT.  Returns false if it is HERE, or not known. */
static bool other_directory(const struct owner *owner, const char *here, char *text, size_t size)
{
	return owner->host[0] == '\0' && owner->process.pid > 0 &&
	       process_directory(owner->process.pid, text, size) && strcmp(text, here) != 0;
}

/* Append "in DIRECTORY" to the command in TEXT, unless OWNER's directory is HERE.  If the command
 * needs the room, DIRECTORY gets at most half of COLUMNS, and only its end is shown. */
static void add_directory(const struct owner *owner, const char *here, size_t columns, char *text,
    size_t size)
{
	enum { AROUND = sizeof "  in " - 1, LEAST = 8 };
	char directory[PATH_MAX], whole[4 * MOST_COLUMNS];
	size_t used = strlen(text), length, room;
	const char *end;

	if (!other_directory(owner, here, directory, sizeof directory))
		return;
	text_printable(whole, sizeof whole, directory, strlen(directory), MOST_COLUMNS);
	length = strlen(whole);
	room = columns > used + AROUND ? columns - used - AROUND : 0;
	if (room < length && room < columns / 2 - AROUND)
		room = columns / 2 - AROUND;
	if (room < LEAST)
		return;
	if (columns - AROUND - room < used) {
		command_text(owner, columns - AROUND - (length < room ? length : room), text, size);
		used = strlen(text);
	}
	end = whole + (length > room ? length - room + strlen("...") : 0);
	while (end > whole && text_character(end, strlen(end)) == 0 && *end != '\0')
		end++; /* in the middle of a character */
	snprintf(text + used, size - used, "  in %s%s", end > whole ? "..." : "", end);
}

static void print_row(const char *label, const struct owner *owner, size_t turn,
    const struct table *table)
{
	static const char ranks[][sizeof "held"] =
	    {[ALIVE] = "held", [DEAD] = "dead", [UNKNOWN] = "?"};
	char command[5 * MOST_COLUMNS];
	char rank[16], pid[24] = "?", user[11], mode[16], since[32], age[16], id[HOLD_ID_SIZE];
	char note[NOTE_SIZE + sizeof "     note: "], quoted[4 * PATH_MAX + 3];
	size_t columns = command_columns(table), more;

	snprintf(rank, sizeof rank, "%s", ranks[owner->verdict]);
	if (owner->waits)
		snprintf(rank, sizeof rank, "%zu.", turn);
	if (owner->process.pid != 0)
		snprintf(pid, sizeof pid, "%ld", (long)owner->process.pid);
	user_text(&owner->process, user, sizeof user);
	more = table->shown[USER] && strlen(user) > USER_COLUMNS ? strlen(user) - USER_COLUMNS : 0;
	columns -= more < columns ? more : columns;
	mode_column(owner, mode, sizeof mode);
	since_column(owner, since, sizeof since);
	age_column(owner, age, sizeof age);
	command_text(owner, columns, command, sizeof command);
	add_directory(owner, table->here, columns, command, sizeof command);
	print_cells(table,
	    (const char *const[]){[RANK] = rank,
		[PID] = pid,
		[USER] = user,
		[MODE] = mode,
		[SINCE] = since,
		[AGE] = age},
	    command);
	if (owner_find_hold(owner, id, NULL)) {
		text_for_shell(quoted, sizeof quoted, label);
		print_line("     in the background: semlock --release=%s %s", id, quoted);
	}
	if (owner->note[0] == '\0')
		return;
	snprintf(note, sizeof note, "     note: %s", owner->note);
	print_cut(table, note);
}

static const char *state_of(const char *label, const struct owners *found)
{
	if (found->holders == 0)
		/* no holder of a server's lock is known here: another machine holds it */
		return server_method(label) != NULL ? "its holder is not known here" : "free";
	switch (found->list[0].verdict) {
	case ALIVE:
		if (found->list[0].doubt == DOUBT_MACHINE)
			return "held on another machine";
		if (found->list[0].doubt == DOUBT_NAMESPACE && found->list[0].process.pid == 0)
			return "held; its holder cannot be seen from here";
		break;
	case DEAD:
		return "left behind, and free to take";
	case UNKNOWN:
		return "unknown: the holder cannot be checked";
	}
	return "held";
}

static bool exists(const char *label)
{
	struct stat status;

	return lstat(label, &status) == 0;
}

/* Is LABEL a descriptor of another process, and its file deleted?  Fills PATH with the name that
 * the file had. */
static bool was_deleted(const char *label, char path[PATH_MAX])
{
	static const char mark[] = " (deleted)";
	ssize_t length;

	if (strncmp(label, "/proc/", strlen("/proc/")) != 0)
		return false;
	length = readlink(label, path, PATH_MAX - 1) - (ssize_t)strlen(mark);
	if (length <= 0 || strncmp(path + length, mark, strlen(mark)) != 0)
		return false;
	path[length] = '\0';
	return true;
}

/* The living process that the file LABEL names, as a PID file or a dot lock does; 0: none.
 * semlock's own locks of that kind are found without this, because they are under flock(2), too. */
static pid_t named_in_file(const char *label, struct search_terms *terms)
{
	struct lock_spec spec = {.name = label, .method = method_named("link")};
	struct owners found;
	struct error error;
	pid_t pid = 0;

	if (owners_look_by_name(&found, &spec, true, terms, &error) == 0 && owners_held(&found) &&
	    found.list[0].verdict == ALIVE && found.list[0].host[0] == '\0')
		pid = found.list[0].process.pid;
	owners_forget(&found);
	return pid;
}

/* A kernel lock's file may not exist: perhaps the name is mistyped.  Or another program has made a
 * lock of another kind. */
static void print_free(const char *label, enum family family, struct search_terms *terms)
{
	const pid_t pid = family == OF_KERNEL ? named_in_file(label, terms) : 0;

	if (pid != 0)
		print_line(
		    "%s: free as a kernel lock; its text names process %ld: see --who -m link",
		    label, (long)pid);
	else if (family == OF_KERNEL && !exists(label))
		print_line("%s: free (no such file)", label);
	else
		print_line("%s: free", label);
}

static void print_table(const char *label, const struct owners *found)
{
	const struct table table = make_table();
	const char *titles[NCOLUMNS];
	char path[PATH_MAX];

	print_line("%s: %s, %zu waiting", label, state_of(label, found),
	    found->count - found->holders);
	if (was_deleted(label, path))
		print_line("     deleted: %s (a new file of that name is another lock)", path);
	for (int i = 0; i < NCOLUMNS; i++)
		titles[i] = columns_of[i].title;
	print_cells(&table, titles, "COMMAND");
	for (size_t i = 0; i < found->count; i++)
		print_row(label, &found->list[i], i - found->holders + 1, &table);
	if (found->seen == SEEN_NOT_ALL)
		printf(
		    "     Some holders or waiters are in processes that may not be looked into.\n");
}

/* MOMENT, ns after 1970, as "2026-11-21T01:47:01Z". */
static void json_time(const char *key, int64_t moment)
{
	time_t seconds = (time_t)(moment / SECOND);
	char text[40] = "null";
	struct tm when;

	if (moment != 0 && gmtime_r(&seconds, &when) != NULL)
		strftime(text, sizeof text, "\"%Y-%m-%dT%H:%M:%SZ\"", &when);
	printf("\"%s\": %s, ", key, text);
}

static void json_owner(const struct owner *owner)
{
	static const char alive[][sizeof "false"] =
	    {[ALIVE] = "true", [DEAD] = "false", [UNKNOWN] = "null"};
	const struct process *process = &owner->process;
	char host[256] = "", user[64], directory[PATH_MAX], id[HOLD_ID_SIZE];

	gethostname(host, sizeof host - 1);
	user_text(process, user, sizeof user);
	printf("{");
	json_number(stdout, "pid", process->pid, process->pid != 0);
	json_number(stdout, "watcher", owner->supervisor, owner->supervisor != 0);
	json_text(stdout, "id", owner_find_hold(owner, id, NULL) ? id : NULL);
	json_text(stdout, "note", owner->note[0] == '\0' ? NULL : owner->note);
	json_number(stdout, "taker", owner->taker, owner->taker != 0);
	json_number(stdout, "uid", (long long)process->user,
	    process->pid != 0 && process->user != (uid_t)-1);
	json_text(stdout, "user", strcmp(user, "?") == 0 ? NULL : user);
	json_text(stdout, "name", process->name[0] == '\0' ? NULL : process->name);
	printf("\"alive\": %s, ", alive[owner->verdict]);
	json_text(stdout, "host", owner->host[0] == '\0' ? host : owner->host);
	json_text(stdout, "method", owner->method);
	json_text(stdout, "mode", mode_text(owner->mode));
	json_number(stdout, "slot", owner->slot, owner->slot >= 0);
	json_number(stdout, "last_slot", owner->last_slot, owner->last_slot >= 0);
	json_number(stdout, "start", owner->first, owner->kind != 0);
	json_number(stdout, "length", owner->last == LLONG_MAX ? 0 : owner->last - owner->first + 1,
	    owner->kind != 0 && owner->last != LLONG_MAX);
	json_time("since", owner->since_exact ? owner->since : 0);
	json_time("started",
	    process->pid == 0 || process->started == 0 ? 0 : process_start(process->started));
	json_time("touched", owner->touched);
	json_text(stdout, "cwd",
	    owner->host[0] == '\0' && process->pid > 0 &&
		    process_directory(process->pid, directory, sizeof directory)
		? directory
		: NULL);
	printf("\"command\": ");
	if (process->pid == 0 || process->command_length == 0)
		printf("null");
	else
		json_words(stdout, process->command, process->command_length);
	printf("}");
}

static void json_list(const char *key, const struct owner *list, size_t count)
{
	printf("\"%s\": [", key);
	for (size_t i = 0; i < count; i++) {
		printf(i == 0 ? "\n    " : ",\n    ");
		json_owner(&list[i]);
	}
	printf("]");
}

static void print_json(const char *label, const struct owners *found, enum family family,
    bool first)
{
	static const char truth[][sizeof "false"] = {"false", "true"};
	char path[PATH_MAX];

	printf("%s{\"lock\": ", first ? "" : ",\n ");
	json_string(stdout, label, strlen(label));
	printf(", \"held\": %s, \"unseen\": %s, \"exists\": %s, ", truth[owners_held(found)],
	    truth[found->seen > SEEN_ALL], family == ON_SERVER ? "null" : truth[exists(label)]);
	json_text(stdout, "deleted", was_deleted(label, path) ? path : NULL);
	printf("\n  ");
	json_list("holders", found->list, found->holders);
	printf(",\n  ");
	json_list("waiters", found->list + found->holders, found->count - found->holders);
	printf("}");
}

static int compare_slots(const void *one, const void *two)
{
	return ((const struct owner *)one)->slot - ((const struct owner *)two)->slot;
}

/* /proc shows that a process with a ticket waits; only its command line tells for which mode, and
 * by which method. */
static void name_wish(struct owner *waiter)
{
	const struct process *process = &waiter->process;
	struct other_semlock other;
	struct lock_spec spec;

	if (waiter->mode != MODE_UNKNOWN || !name_is_semlock(process->name) ||
	    !other_semlock_read(process->command, process->command_length, &other))
		return;
	waiter->mode = other.mode;
	if (waiter->method != NULL || other.method->family != OF_KERNEL)
		return;
	spec = (struct lock_spec){.method = other.method};
	waiter->method = other.method->name;
	if (other.has_range || other.mode == MODE_SLOT)
		return;
	waiter->kind = owners_kinds(&LOCK_OF(&spec));
	waiter->last = LLONG_MAX;
}

static int print_lock(const struct request *request, const char *name, struct owners *found,
    enum family family, bool first)
{
	int status;

	if (found->holders > 0 && found->list[0].mode == MODE_SLOT)
		qsort(found->list, found->holders, sizeof found->list[0], compare_slots);
	owners_name_callers(found, getpid());
	notes_read(found);
	for (size_t i = found->holders; i < found->count; i++)
		name_wish(&found->list[i]);
	if (request->json)
		print_json(name, found, family, first);
	else
		print_table(name, found);
	status = owners_held(found) ? EXIT_BUSY : EXIT_SUCCESS;
	owners_forget(found);
	return status;
}

static int show_lock(const struct request *request, const struct lock_spec *wanted,
    struct search_terms *terms, bool first)
{
	struct lock_spec lock = *wanted;
	struct owners found = {0};
	struct error error;

	if (!(wanted->of_user && access(wanted->name, F_OK) != 0 && errno == ENOENT) &&
	    owners_look_by_name(&found, &lock, request->method_asked, terms, &error) != 0) {
		complain("%s: %s", wanted->name, error.text);
		return exit_status_of(error.kind);
	}
	if (found.count > 0 || request->json)
		return print_lock(request, wanted->name, &found, lock.method->family, first);
	owners_forget(&found);
	print_free(wanted->name, lock.method->family, terms);
	return EXIT_SUCCESS;
}

static void say_left_out(const struct open_locks *all)
{
	char name[64], more[48] = "";
	uid_t user = 0;
	size_t users = open_locks_left_out(all, &user);

	if (users == 0)
		return;
	name_user(user, name, sizeof name);
	if (users > 1)
		snprintf(more, sizeof more, " and of %zu more", users - 1);
	complain("some locks of user %s%s are left out: looking at all of them takes too long",
	    name, more);
}

/* --who without LOCK.  A lock that is free by now, or cannot be looked at, is left out. */
static int show_all(const struct request *request, struct search_terms *terms)
{
	static struct open_locks all; /* static: used until the process ends */
	struct owners found;
	enum family family;
	int worst = EXIT_SUCCESS;
	bool first = true;

	if (access("/proc/locks", R_OK) != 0) {
		complain("cannot find the locks: cannot read /proc/locks: %s", strerror(errno));
		return EXIT_UNAVAILABLE;
	}
	open_locks_find(&all);
	for (size_t i = 0; i < all.count; i++) {
		if (open_locks_owners(&found, &all, i, request->spec.method, terms) &&
		    found.count > 0) {
			family = server_method(all.list[i].name) != NULL ? ON_SERVER : OF_FILES;
			if (print_lock(request, all.list[i].name, &found, family, first) ==
			    EXIT_BUSY)
				worst = EXIT_BUSY;
			first = false;
		}
		open_locks_looked(&all);
	}
	if (all.unseen)
		complain("some locks of other users' processes cannot be seen by this user");
	say_left_out(&all);
	if (all.failed)
		die(EXIT_SYSTEM, "out of memory");
	return worst;
}

/* --who 8 looks for a file called 8, and not at descriptor 8. */
static void say_if_number(const char *name)
{
	if (name[strspn(name, "0123456789")] == '\0' && access(name, F_OK) != 0)
		complain("%s: taken as a file's name, not as a descriptor", name);
}

void who(const struct request *request)
{
	struct search_terms terms = SEARCH_THOROUGHLY;
	struct fd_walk walk = {0};
	int worst = EXIT_SUCCESS, status;
	bool first = true;

	if (request->nlocks == 1)
		terms.without_waiters = true;
	else
		terms.walk = &walk;
	if (request->json)
		printf("[");
	if (request->nlocks == 0)
		worst = show_all(request, &terms);
	for (unsigned i = 0; i < request->nlocks; i++) {
		say_if_number(request->locks[i].name);
		status = show_lock(request, &request->locks[i], &terms, first);
		first = first && status > EXIT_BUSY;
		if (status > worst)
			worst = status;
	}
	if (request->json)
		printf("]\n");
	search_terms_forget(&terms);
	fd_walk_drop(&walk);
	end_output(worst);
}
