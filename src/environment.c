#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"

static const char *mode_name(const struct lock *lock)
{
	if (lock->slots > 0)
		return "slot";
	return lock->mode == SHARED ? "shared" : "exclusive";
}

/* "DEVICE:INODE:MODE", outermost lock first, a blank between two. */
static int add_held(const struct lock *held, unsigned count)
{
	const char *outer = getenv("SEMLOCK_HELD");
	size_t room = (outer == NULL ? 0 : strlen(outer)) + count * 64 + 1;
	char *text = malloc(room);
	size_t used = 0;
	int result;

	if (text == NULL)
		return -1;
	text[0] = '\0';
	if (outer != NULL)
		used = (size_t)snprintf(text, room, "%s", outer);
	for (unsigned i = 0; i < count; i++) {
		if (held[i].file != NULL || held[i].smith != NULL)
			continue; /* its record tells; no inode of this machine does */
		used += (size_t)snprintf(text + used, room - used, "%s%llx:%llx:%s",
		    used > 0 ? " " : "", (unsigned long long)held[i].device,
		    (unsigned long long)held[i].inode, mode_name(&held[i]));
	}
	result = used == 0 ? 0 : setenv("SEMLOCK_HELD", text, 1);
	free(text);
	return result;
}

static int set_slot(const struct lock *lock)
{
	char number[16];

	if (lock->slot < 0)
		return unsetenv("SEMLOCK_SLOT"); /* an outer lock's slot is not this one's */
	snprintf(number, sizeof number, "%d", lock->slot);
	return setenv("SEMLOCK_SLOT", number, 1);
}

static int set_token(const struct lock *lock)
{
	char number[24];

	if (lock->smith == NULL || lock->token < 0)
		return unsetenv("SEMLOCK_TOKEN");
	snprintf(number, sizeof number, "%lld", lock->token);
	return setenv("SEMLOCK_TOKEN", number, 1);
}

int environment_set(const struct lock *lock, const char *label, const struct lock *held,
    unsigned count, struct why *why)
{
	if (setenv("SEMLOCK_LOCK", label, 1) != 0 ||
	    setenv("SEMLOCK_METHOD", lock->method->name, 1) != 0 ||
	    setenv("SEMLOCK_MODE", mode_name(lock), 1) != 0 || set_slot(lock) != 0 ||
	    set_token(lock) != 0 ||
	    add_held(held, count) != 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot set the environment");
	return 0;
}
