#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include "deadline.h"
#include "messages.h"
#include "occupants.h"
#include "report.h"
#include "sentence.h"

void messages_taken(const struct options *opt, int64_t since)
{
	int64_t took;

	if (!opt->verbose)
		return;
	took = clock_now() - since;
	if (opt->as_flock)
		tell(STDOUT_FILENO, "getting lock took %lld.%06lld seconds",
		    (long long)(took / SECOND), (long long)(took % SECOND / 1000));
	else
		complain("%s: taken after %lld.%06lld s", opt->label, (long long)(took / SECOND),
		    (long long)(took % SECOND / 1000));
}

void messages_running(const struct options *opt)
{
	if (!opt->verbose)
		return;
	if (opt->as_flock)
		tell(STDOUT_FILENO, "executing %s", opt->command[0]);
	else
		complain("%s: running %s", opt->label, opt->command[0]);
}

void messages_stopped(const struct options *opt, pid_t pid)
{
	if (opt->verbose && !opt->as_flock)
		complain("%s: stopped process %ld", opt->label, (long)pid);
}

/* Who holds it now, which is a moment after it was refused. */
static bool holder(const struct lock *lock, char *text, size_t size)
{
	struct occupants found;
	struct why ignored;
	bool known;

	if (occupants_look(&found, lock, occupants_kinds(lock), &ignored) != 0)
		return false;
	occupants_keep_meeting(&found, lock);
	occupants_name_callers(&found);
	known = occupants_sentence(&found, text, size);
	occupants_forget(&found);
	return known;
}

void messages_busy(const struct options *opt, const char *label, const struct lock *lock)
{
	bool waited = !opt->nonblocking && opt->wait > 0;
	char text[400];

	if (opt->as_flock) {
		if (opt->verbose)
			complain(waited ? "timeout while waiting to get lock" : "failed to get lock");
	} else if (!opt->quiet && (opt->verbose || isatty(STDERR_FILENO))) {
		if (!holder(lock, text, sizeof text))
			snprintf(text, sizeof text, waited ? "still busy" : "busy");
		complain("%s: %s%s", label, text, waited ? "; the time is up" : "");
	}
}
