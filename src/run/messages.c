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

/* The holder at this moment, which may be another than the one that LOCK was busy for. */
static bool holder_text(const struct lock *lock, char *text, size_t size)
{
	struct owners found;
	bool known;

	if (!messages_owners(&found, lock))
		return false;
	known = owner_text(&found, text, size);
	owners_forget(&found);
	return known;
}

void messages_busy(const struct request *request, const struct lock *lock, bool waited)
{
	char text[400], label[PATH_MAX];

	if (request->as_flock) {
		if (request->verbose)
			complain(waited ? "timeout while waiting to get lock" : "failed to get lock");
	} else if (!request->quiet && (request->verbose || isatty(STDERR_FILENO))) {
		if (!holder_text(lock, text, sizeof text))
			snprintf(text, sizeof text, waited ? "still busy" : "busy");
		lock_text(lock, label, sizeof label);
		complain("%s: %s%s", label, text, waited ? "; the time is up" : "");
	}
}
