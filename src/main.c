/* SPDX-License-Identifier: MIT */
/* semlock - run a command while holding a lock.  The whole story, in order. */
#include <config.h>

#include <errno.h>
#include <sys/prctl.h>

#include "run/acquire.h"
#include "run/front.h"
#include "run/run.h"
#include "run/who.h"
#include "hold/keeper_client.h"
#include "owners/owners.h"
#include "cli/read_request.h"

int main(int argc, char **argv)
{
	static struct request request; /* static: used until the process ends, also by threads */
	static struct run run;

	request_read(&request, argc, argv);
	if (!request.as_flock && !name_is_semlock(program_invocation_short_name))
		prctl(PR_SET_NAME, SEMLOCK_NAME);
	if (request.who)
		who(&request);
	if (request.held)
		return run_is_under(&request);
	if (request.release != NULL)
		return release_hold(&request);
	if (request.resume != NULL)
		return front_resume(&request);
	if (run_begin(&run, &request) != 0)
		return run_end(&run);
	if (run.detachment.is_front)
		return front_wait(&request, run.detachment.front);
	if (run.subreaper.holder > 0)
		return run_watch(&run);
	if (request.unlock) {
		run_unlocked(&run);
		return run_end(&run);
	}
	run.holds = acquire(&run);
	/* with neither a command nor --hold, the caller's descriptor stays locked */
	if (run.holds != LOCKS_NONE && (request.command != NULL || request.hold)) {
		run_command(&run);
		run_release(&run);
	}
	return run_end(&run);
}
