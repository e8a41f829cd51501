#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "run/messages.h"
#include "owners/owners_look.h"
#include "report/error.h"
#include "owners/owner_text.h"

bool messages_owners(struct owners *found, const struct lock *lock)
{
	struct error ignored;

	if (owners_look(found, lock, owners_kinds(lock), &ignored) != 0)
		return false;
	owners_keep_overlapping(found, lock);
	owners_name_callers(found);
	return true;
}

const char *messages_label(const struct request *request, const struct lock *lock)
{
	static char text[PATH_MAX + 32];

	if (request->as_flock || lock->name != NULL)
		return lock->name == NULL ? request->label : lock->name;
	lock_text(lock, text, sizeof text);
	return text;
}

void messages_holder(const struct lock *lock, const char *otherwise, char *text, size_t size)
{
	struct owners found;

	snprintf(text, size, "%s", otherwise);
	if (!messages_owners(&found, lock))
		return;
	owner_text(&found, text, size);
	owners_forget(&found);
}

void messages_busy(const struct request *request, const struct lock *lock, bool waited)
{
	char text[400];

	if (request->as_flock) {
		if (request->verbose)
			complain(waited ? "timeout while waiting to get lock" : "failed to get lock");
	} else if (!request->quiet && (request->verbose || isatty(STDERR_FILENO))) {
		messages_holder(lock, waited ? "still busy" : "busy", text, sizeof text);
		complain("%s: %s%s", messages_label(request, lock), text, waited ? "; the time is up" : "");
	}
}
