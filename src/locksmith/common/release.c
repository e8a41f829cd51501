/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/release.h"

/* How long to go on trying while the server is absent: for a lease, within these bounds. */
#define LEAST (10 * SECOND)
#define MOST (30 * SECOND)
#define PAUSE (SECOND / 4)
#define LAST_TRY SECOND

static int lapses_by_itself(const struct turn *turn, const struct error *reason,
    struct error *error)
{
	int64_t left = later(turn->deadline - clock_boottime(), 0);

	return error_plain(error, ERROR_UNAVAILABLE, "%.300s; it expires in %lld s", reason->text,
	    (long long)((left + SECOND - 1) / SECOND));
}

int release_lock(struct turn *turn, struct error *error)
{
	/* Do not stop at the deadline: perhaps nobody has taken the lock since, and what is left of
	 * ours may be in the way of others. */
	int64_t give_up = clock_boottime() + later(LEAST, earlier(turn->lease, MOST));

	turn->unsure = false;
	for (;; turn->unsure = true) {
		int64_t until = later(give_up, clock_boottime() + LAST_TRY);
		struct error reason = {.kind = ERROR_NONE};
		enum freed freed = engine.release(turn, until, &reason);

		/* Before the deadline, nobody else could take the lock.  So a request of ours has
		 * removed it, and the answer to that was lost. */
		if (freed == FREE_GONE && turn->unsure && clock_boottime() < turn->deadline)
			freed = FREED;
		if (freed == FREED)
			return 0;
		if (freed == FREE_GONE)
			return error_plain(error, ERROR_LOST, "%s", reason.text);
		if ((reason.kind != ERROR_AWAY && reason.kind != ERROR_SLOW) ||
		    clock_boottime() >= give_up)
			return lapses_by_itself(turn, &reason, error);
		loop_pause(clock_boottime() + spread(PAUSE));
	}
}

void release_rest(struct turn *turn)
{
	/* Be quick, because semlock waits until this process has ended; but after the end of our
	 * input, it waits for a second at most, or until the lease ends. */
	int64_t time = protocol_released() ? later(turn->lease / 3, SECOND) : SECOND;
	struct error ignored;

	engine.release(turn, clock_boottime() + time, &ignored);
}
