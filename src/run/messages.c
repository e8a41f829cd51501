#include <config.h>

#include <limits.h>
#include <unistd.h>

#include "run/messages.h"
#include "report/error.h"
#include "owners/owner_text.h"

const char *messages_label(const struct request *request, const struct lock *lock)
{
	static char text[PATH_MAX + 32];

	if (request->as_flock || lock->spec->name != NULL)
		return lock->spec->name == NULL ? request->label : lock->spec->name;
	lock_text(lock, text, sizeof text);
	return text;
}

void messages_busy(const struct request *request, const struct lock *lock, enum busy_why why)
{
	bool waited = why == BUSY_TIMEOUT;
	char text[400];

	if (request->as_flock) {
		if (request->verbose)
			complain(waited ? "timeout while waiting to get lock" : "failed to get lock");
	} else if (!request->quiet && (request->verbose || isatty(STDERR_FILENO))) {
		holder_text(lock, waited ? "still busy" : "busy", text, sizeof text);
		complain("%s: %s%s", messages_label(request, lock), text, waited ? "; the time is up" : "");
	}
}
