#include <config.h>

#include <unistd.h>

#include "deadline.h"
#include "messages.h"
#include "report.h"

void messages_taken(const struct options *opt, int64_t since)
{
	int64_t took = clock_now() - since;

	if (!opt->verbose)
		return;
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

void messages_busy(const struct options *opt, const char *label)
{
	bool waited = !opt->nonblocking && opt->wait > 0;

	if (opt->as_flock) {
		if (opt->verbose)
			complain(waited ? "timeout while waiting to get lock" : "failed to get lock");
	} else if (!opt->quiet && (opt->verbose || isatty(STDERR_FILENO))) {
		complain("%s: %s", label, waited ? "still busy: the time is up" : "busy");
	}
}
