#include <config.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "deadline.h"
#include "sentence.h"

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

/* Its end cannot be seen from here, but who began it may be. */
static void unseen(const struct occupant *occupant, char *text, size_t size)
{
	if (occupant->taker > 0)
		snprintf(text, size, "held by a process that cannot be seen (process %ld took it)",
		    (long)occupant->taker);
	else
		snprintf(text, size, "held by a process that cannot be seen");
}

/* A server knows less of them. */
static void elsewhere(const struct occupant *occupant, char *text, size_t size)
{
	const struct process *process = &occupant->process;
	char command[256], since[32];
	size_t used;

	if (process->pid == 0) {
		snprintf(text, size, "held by %s", process->command_length > 0 ? process->command : "somebody");
		return;
	}
	snprintf(text, size, "held by %ld on %s", (long)process->pid, occupant->host);
	used = strlen(text);
	if (process->command_length > 0) {
		process_command(process, command, sizeof command, 60);
		snprintf(text + used, size - used, " (%s)", command);
		used = strlen(text);
	}
	if (occupant->since != 0) {
		moment_text(occupant->since, since, sizeof since);
		snprintf(text + used, size - used, " since %s", since);
	}
}

bool occupants_sentence(const struct occupants *found, char *text, size_t size)
{
	const struct occupant *first = found->list;
	char command[256], since[32];
	size_t used;

	if (found->holders == 0)
		return false;
	if (first->host[0] != '\0') {
		elsewhere(first, text, size);
	} else if (first->process.pid == 0) {
		unseen(first, text, size);
	} else {
		process_command(&first->process, command, sizeof command, 60);
		moment_text(first->since, since, sizeof since);
		snprintf(text, size,
		    first->since_exact ? "held by %ld (%s) since %s"
				       : "held by %ld (%s, started %s)",
		    (long)first->process.pid, command, since);
	}
	used = strlen(text);
	if (found->holders > 1)
		snprintf(text + used, size - used, " and %zu more", found->holders - 1);
	return true;
}
