#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/environment.h"
#include "sys/memory.h"
#include "report/text.h"

extern char **environ;

struct variable {
	const char *name; /* with the "=" */
	const char *value; /* NULL: not set, even if an outer lock has set it */
};

static const char *held_mode_name(const struct lock *lock)
{
	if (lock->spec->slots > 0)
		return "slot";
	return lock->spec->mode == SHARED ? "shared" : "exclusive";
}

/* "DEVICE:INODE:MODE" */
static char *put_identity(char *at, const struct lock *lock)
{
	at = stpcpy(text_hex(at, (unsigned long long)lock->id.device), ":");
	at = stpcpy(text_hex(at, (unsigned long long)lock->id.inode), ":");
	return stpcpy(at, held_mode_name(lock));
}

/* Make *VALUE the locks, outermost first, with a blank between two; NULL if there are none.  Returns 0, or -1
 * without memory. */
static int list_held(const struct lock *held, unsigned count, char **value)
{
	const char *outer = getenv("SEMLOCK_HELD");
	char *text = memory_lasting((outer == NULL ? 0 : strlen(outer)) + (size_t)count * 64 + 1);
	char *at = text;

	if (text == NULL)
		return -1;
	if (outer != NULL)
		at = stpcpy(at, outer);
	for (unsigned i = 0; i < count; i++) {
		if (held[i].file != NULL || held[i].place.covered)
			continue; /* nesting_look() finds the first by its record */
		if (at > text)
			at = stpcpy(at, " ");
		at = put_identity(at, &held[i]);
	}
	*value = at > text ? text : NULL;
	return 0;
}

static char *assignment(const struct variable *variable)
{
	char *text = memory_lasting(strlen(variable->name) + strlen(variable->value) + 1);

	if (text != NULL)
		stpcpy(stpcpy(text, variable->name), variable->value);
	return text;
}

/* The prefix first: few variables of a shell begin so. */
static bool is_own_variable(const char *entry, const struct variable *variables, size_t count)
{
	if (strncmp(entry, "SEMLOCK_", strlen("SEMLOCK_")) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strncmp(entry, variables[i].name, strlen(variables[i].name)) == 0)
			return true;
	return false;
}

/* Replace environ at once: setenv(3) would allocate for each variable.  Returns 0, or -1 without memory. */
static int set_variables(const struct variable *variables, size_t count)
{
	size_t before = 0, used = 0;
	char **list;

	while (environ != NULL && environ[before] != NULL)
		before++;
	list = memory_lasting((before + count + 1) * sizeof *list);
	if (list == NULL)
		return -1;
	for (size_t i = 0; i < before; i++)
		if (!is_own_variable(environ[i], variables, count))
			list[used++] = environ[i];
	for (size_t i = 0; i < count; i++) {
		if (variables[i].value == NULL)
			continue;
		list[used] = assignment(&variables[i]);
		if (list[used++] == NULL)
			return -1;
	}
	environ = list;
	return 0;
}

int environment_set(const struct lock *lock, const char *label, const struct lock *held,
    unsigned count, struct error *error)
{
	char slot[16], token[24], *locks = NULL;
	int failed = list_held(held, count, &locks);
	const struct variable variables[] = {
	    {"SEMLOCK_LOCK=", label},
	    {"SEMLOCK_METHOD=", lock->spec->method->name},
	    {"SEMLOCK_MODE=", held_mode_name(lock)},
	    {"SEMLOCK_SLOT=", lock->slot < 0 ? NULL : slot},
	    {"SEMLOCK_TOKEN=", lock->smith == NULL || lock->token < 0 ? NULL : token},
	    {"SEMLOCK_HELD=", locks},
	    {"SEMLOCK_PASSWORD=", NULL}, /* the helper has read it; the command must not */
	};
	const size_t all = sizeof variables / sizeof *variables - (lock->smith == NULL);

	if (lock->slot >= 0)
		snprintf(slot, sizeof slot, "%d", lock->slot);
	if (lock->smith != NULL)
		snprintf(token, sizeof token, "%lld", lock->token);
	if (failed != 0 || set_variables(variables, all) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot set the environment");
	return 0;
}
