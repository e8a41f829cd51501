#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "methods/server/locksmith.h"
#include "methods/server/server.h"
#include "report/text.h"
#include "owners/server_owners.h"

/* The word of the field KEY ("host="), made safe to print. */
static void word(const char *who, const char *key, char *text, size_t size)
{
	const char *at = strstr(who, key);
	size_t length;

	text[0] = '\0';
	if (at == NULL || (at != who && at[-1] != ' '))
		return;
	at += strlen(key);
	length = strcspn(at, " ");
	text_printable(text, size, at, length, size - 1);
}

/* What the holder calls itself: the one field with blanks in it, and so the last. */
static void note(struct process *process, const char *who)
{
	const char *at = strstr(who, "note=");

	if (at == NULL || (at != who && at[-1] != ' '))
		return;
	snprintf(process->command, sizeof process->command, "%s", at + 5);
	process->command_length = strlen(process->command) + 1;
}

/* The number of the field KEY, from 0 to MOST; -1 if there is none. */
static long long number(const char *who, const char *key, long long most)
{
	long long value;

	return locksmith_number(who, key, &value) && value >= 0 && value <= most ? value : -1;
}

void server_owners_add(struct owners *found, const char *method, const char *who, bool waits)
{
	struct owner *one = owners_add(found);
	long long slot = number(who, "slot=", INT_MAX), pid = number(who, "pid=", INT32_MAX);
	long long since = number(who, "since=", INT64_MAX / SECOND);
	char mode[16];

	if (one == NULL)
		return;
	word(who, "mode=", mode, sizeof mode);
	one->waits = waits;
	one->method = method;
	one->mode = strcmp(mode, "exclusive") == 0 ? MODE_EXCLUSIVE
		    : strcmp(mode, "shared") == 0  ? MODE_SHARED
		    : mode[0] == '\0'		   ? MODE_UNKNOWN
						   : MODE_SLOT;
	if (slot >= 0)
		one->mode = MODE_SLOT;
	one->slot = (int)slot;
	one->process.user = (uid_t)-1;
	one->process.pid = pid > 0 ? (pid_t)pid : 0;
	word(who, "host=", one->host, sizeof one->host);
	if (one->host[0] == '\0')
		snprintf(one->host, sizeof one->host, "?");
	one->since = since > 0 ? since * SECOND : 0;
	one->since_exact = since > 0;
	note(&one->process, who);
	if (!waits)
		found->holders++;
}

struct asked {
	struct owners *found;
	const char *method;
};

static void hear(const char *line, void *context)
{
	struct asked *asked = context;
	const char *who = locksmith_says(line, "WHO");

	if (who != NULL)
		server_owners_add(asked->found, asked->method, who, strncmp(who, "state=waits", 11) == 0);
}

int server_owners_ask(struct owners *found, const struct lock *lock, struct error *error)
{
	struct asked asked = {.method = lock->method->name};

	*found = (struct owners){0};
	asked.found = found;
	return server_ask(lock, "--who", hear, &asked, error);
}
