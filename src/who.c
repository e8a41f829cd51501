#include <config.h>

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exitcode.h"
#include "json.h"
#include "methods/remote.h"
#include "occupants.h"
#include "proof.h"
#include "report.h"
#include "sentence.h"
#include "text.h"
#include "told.h"
#include "view.h"
#include "who.h"

/* What is left of 80 columns for the command. */
enum { USER_COLUMNS = 8, COMMAND_COLUMNS = 79 - (4 + 1 + 8 + 1 + USER_COLUMNS + 1 + 9 + 1 + 12 + 1) };

static void user_name(const struct process *process, char *name, size_t size)
{
	struct passwd *entry;

	if (process->pid == 0 || process->user == (uid_t)-1) {
		snprintf(name, size, "?");
		return;
	}
	entry = getpwuid(process->user);
	if (entry == NULL)
		snprintf(name, size, "%lu", (unsigned long)process->user);
	else
		text_printable(name, size, entry->pw_name, strlen(entry->pw_name), size - 1);
}

static void mode_name(const struct occupant *occupant, char *name, size_t size)
{
	static const char *const names[] = {"-", "exclusive", "shared", "slot"};

	if (occupant->mode == MODE_SLOT && occupant->slot >= 0)
		snprintf(name, size, "slot %d", occupant->slot);
	else
		snprintf(name, size, "%s", names[occupant->mode]);
}

/* ">" before a time: the process is that old, and its lock younger. */
static void since_name(const struct occupant *occupant, char *name, size_t size)
{
	snprintf(name, size, "%s", occupant->since_exact ? " " : ">");
	if (occupant->since == 0)
		snprintf(name, size, " -");
	else
		moment_text(occupant->since, name + 1, size - 1);
}

static void command_name(const struct occupant *occupant, size_t columns, char *name, size_t size)
{
	char words[512];

	verdict_text(occupant, words, sizeof words);
	if (words[0] != '\0')
		;
	else if (occupant->process.pid == 0 && occupant->process.command_length > 0)
		text_printable(words, sizeof words, occupant->process.command,
		    strlen(occupant->process.command), columns);
	else if (occupant->process.pid == 0 && occupant->taker > 0)
		snprintf(words, sizeof words, "(cannot be seen; %ld took it)",
		    (long)occupant->taker);
	else if (occupant->process.pid == 0)
		snprintf(words, sizeof words, "(cannot be seen)");
	else
		process_command(&occupant->process, words, sizeof words, columns);
	if (occupant->host[0] == '\0' || occupant->verdict != ALIVE)
		snprintf(name, size, "%s", words);
	else
		snprintf(name, size, words[0] == '\0' ? "on %s" : "on %s: %s", occupant->host, words);
}

static void print_row(const struct occupant *occupant, size_t turn)
{
	static const char *const ranks[] = {[ALIVE] = "held", [DEAD] = "dead", [UNKNOWN] = "?"};
	char rank[16], pid[24] = "?", user[11], mode[16], since[32], command[600];
	size_t wider;

	snprintf(rank, sizeof rank, "%s", ranks[occupant->verdict]);
	if (occupant->waits)
		snprintf(rank, sizeof rank, "%zu.", turn);
	if (occupant->process.pid != 0)
		snprintf(pid, sizeof pid, "%ld", (long)occupant->process.pid);
	user_name(&occupant->process, user, sizeof user);
	wider = strlen(user) > USER_COLUMNS ? strlen(user) - USER_COLUMNS : 0;
	mode_name(occupant, mode, sizeof mode);
	since_name(occupant, since, sizeof since);
	command_name(occupant, COMMAND_COLUMNS - wider, command, sizeof command);
	print_line("%4s %8s %-8s %-9s %-12s %s", rank, pid, user, mode, since, command);
}

static const char *state_of(const struct occupants *found)
{
	if (found->holders == 0)
		return "free";
	switch (found->list[0].verdict) {
	case ALIVE:
		break;
	case DEAD:
		return "left behind, and free to take";
	case UNKNOWN:
		return "held or left behind, which is not to be told from here";
	}
	return "held";
}

static void print_table(const char *label, const struct occupants *found)
{
	if (found->count == 0) {
		print_line("%s: free", label);
		return;
	}
	print_line("%s: %s, %zu waiting", label, state_of(found), found->count - found->holders);
	printf("          PID USER     MODE       SINCE       COMMAND\n");
	for (size_t i = 0; i < found->count; i++)
		print_row(&found->list[i], i - found->holders + 1);
	if (found->unseen)
		printf("     Some of this is in other users' processes, and not to be seen by this "
		       "one.\n");
}

static void json_number_or_null(const char *key, long long number, bool known)
{
	if (known)
		printf("\"%s\": %lld, ", key, number);
	else
		printf("\"%s\": null, ", key);
}

static void json_user(const struct process *process)
{
	char name[64];

	json_number_or_null("uid", (long long)process->user,
	    process->pid != 0 && process->user != (uid_t)-1);
	user_name(process, name, sizeof name);
	printf("\"user\": ");
	if (strcmp(name, "?") == 0)
		printf("null");
	else
		json_string(stdout, name, strlen(name));
}

static void json_mode(const struct occupant *occupant)
{
	static const char *const modes[] = {"null", "\"exclusive\"", "\"shared\"", "\"slot\""};

	printf(", \"method\": ");
	if (occupant->method == NULL)
		printf("null");
	else
		json_string(stdout, occupant->method, strlen(occupant->method));
	printf(", \"mode\": %s, ", modes[occupant->mode]);
	json_number_or_null("slot", occupant->slot, occupant->slot >= 0);
	json_number_or_null("start", occupant->first, occupant->kind != 0);
	json_number_or_null("length", occupant->last - occupant->first + 1,
	    occupant->kind != 0 && occupant->last != LLONG_MAX);
}

static void json_occupant(const struct occupant *occupant)
{
	static const char *const alive[] = {[ALIVE] = "true", [DEAD] = "false", [UNKNOWN] = "null"};
	const struct process *process = &occupant->process;
	char host[256] = "";

	gethostname(host, sizeof host - 1);
	printf("{");
	json_number_or_null("pid", process->pid, process->pid != 0);
	json_number_or_null("watcher", occupant->watcher, occupant->watcher != 0);
	json_number_or_null("taker", occupant->taker, occupant->taker != 0);
	json_user(process);
	printf(", \"alive\": %s, ", alive[occupant->verdict]);
	printf("\"host\": ");
	json_string(stdout, occupant->host[0] == '\0' ? host : occupant->host,
	    strlen(occupant->host[0] == '\0' ? host : occupant->host));
	json_mode(occupant);
	printf("\"since\": ");
	json_moment(stdout, occupant->since_exact ? occupant->since : 0);
	printf(", \"started\": ");
	json_moment(stdout, process->pid == 0 || process->started == 0
				? 0
				: process_start(process->started));
	printf(", \"touched\": ");
	json_moment(stdout, occupant->touched);
	printf(", \"command\": ");
	if (process->pid == 0 || process->command_length == 0)
		printf("null");
	else
		json_words(stdout, process->command, process->command_length);
	printf("}");
}

static void json_list(const char *key, const struct occupant *list, size_t count)
{
	printf("\"%s\": [", key);
	for (size_t i = 0; i < count; i++) {
		printf(i == 0 ? "\n    " : ",\n    ");
		json_occupant(&list[i]);
	}
	printf("]");
}

static void print_json(const char *label, const struct occupants *found, bool first)
{
	printf("%s{\"lock\": ", first ? "" : ",\n ");
	json_string(stdout, label, strlen(label));
	printf(", \"held\": %s, \"unseen\": %s,\n  ", occupants_held(found) ? "true" : "false",
	    found->unseen ? "true" : "false");
	json_list("holders", found->list, found->holders);
	printf(",\n  ");
	json_list("waiters", found->list + found->holders, found->count - found->holders);
	printf("}");
}

/* A flock of semlock's on a lock made of files, which has no more than a PID in it, is -m link's. */
static bool is_link(const struct occupants *found, const char *name)
{
	struct lock lock = {.method = method_named("link"), .name = name};
	struct view view;
	struct why ignored;
	bool its_own = found->holders == 1 && view_open(&view, &lock, &ignored) == 0 &&
		       view.sight.there && view.sight.record.kind == RECORD_PID &&
		       proof_names(&found->list[0], &view.sight.record);

	if (found->holders == 1)
		view_close(&view);
	return its_own;
}

/* No method was named: kernel locks of all kinds count, or, if it says so itself, what it is. */
static int look_at_any(struct occupants *found, struct lock *lock, struct why *why)
{
	const struct method *recorded = view_method(lock->name);

	if (recorded == NULL) {
		if (occupants_look(found, lock, KIND_FLOCK | KIND_OFD | KIND_POSIX, why) != 0)
			return -1;
		if (!is_link(found, lock->name))
			return 0;
		occupants_forget(found);
		recorded = method_named("link");
	}
	lock->method = recorded;
	return occupants_look(found, lock, 0, why);
}

static int look(struct occupants *found, struct lock *lock, bool method_named, struct why *why)
{
	if (remote_method(lock->name) != NULL)
		lock->method = remote_method(lock->name);
	if ((lock->method->can & ON_SERVER) != 0)
		return told_ask(found, lock, why);
	if (!method_named)
		return look_at_any(found, lock, why);
	return occupants_look(found, lock, occupants_kinds(lock), why);
}

static int compare_slots(const void *one, const void *two)
{
	return ((const struct occupant *)one)->slot - ((const struct occupant *)two)->slot;
}

static int show(const struct options *options, const struct wanted *wanted, bool first)
{
	struct lock lock = {.method = options->method, .name = wanted->name, .fd = -1};
	struct occupants found;
	struct why why;
	int status;

	if (look(&found, &lock, options->method_named, &why) != 0) {
		complain("%s: %s", wanted->name, why.text);
		return exit_status_of(why.trouble);
	}
	if (found.holders > 0 && found.list[0].mode == MODE_SLOT)
		qsort(found.list, found.holders, sizeof found.list[0], compare_slots);
	occupants_name_callers(&found);
	if (options->json)
		print_json(wanted->name, &found, first);
	else
		print_table(wanted->name, &found);
	status = occupants_held(&found) ? EXIT_BUSY : EXIT_SUCCESS;
	occupants_forget(&found);
	return status;
}

int who(const struct options *options)
{
	int worst = EXIT_SUCCESS, status;
	bool first = true;

	if (options->json)
		printf("[");
	for (unsigned i = 0; i < options->nlocks; i++) {
		status = show(options, &options->locks[i], first);
		first = first && status > EXIT_BUSY;
		if (status > worst)
			worst = status;
	}
	if (options->json)
		printf("]\n");
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SYSTEM, "cannot write to standard output");
	return worst;
}
