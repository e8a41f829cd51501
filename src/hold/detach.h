/* SPDX-License-Identifier: MIT */
/* hold/detach.h - --hold --detach: a hold that outlasts the call that took it.
 *
 *	caller --> front ----socket----> keeper ---pipes---> holder --> placeholder
 *	           prints OK             has the ID          semlock --hold: waits, takes the
 *	                                                     lock, releases it
 *
 * The front is the process that the caller has started.  It shows what the holder says, prints OK
 * once the lock is held, and exits.  The keeper and the holder are in a session of their own.  The
 * placeholder (hold.h) sleeps in the command's place; when it exits, the holder releases the lock.
 *
 * The keeper alone reads what the holder says: lines of standard output, among them the events of
 * --status-fd, and text of standard error.  The keeper sends the front what the caller should see.
 * The holder's standard input is a pipe from the keeper, and the end of that pipe ends the hold.
 *
 * If the front ends before it has acknowledged that OK is printed, the hold ends, too: a caller
 * that does not know of its lock could not release it.
 *
 * With --keep-place, the holder waits without a limit, and only the front observes -w.  When -w is
 * over, the front prints WAITING, acknowledges that, and exits, while the keeper and the holder
 * stay.  If the front ends before it acknowledges, the place is given up.  Afterwards each --resume
 * takes the part of the front, and may come and go (run/front.h). */
#ifndef SEMLOCK_HOLD_DETACH_H
#define SEMLOCK_HOLD_DETACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/request.h"
#include "owners/hold_id.h"
#include "report/error.h"
#include "hold/caller_fds.h"

struct detachment {
	bool is_front;            /* this is the process that the caller has started */
	int front;                /* in the front: its socket to the keeper */
	struct caller_fds caller; /* in the holder: the caller's descriptors */
	char id[HOLD_ID_SIZE];    /* in the holder: the keeper's ID */
};

/* Fork the keeper, and from the keeper the holder.  The keeper never returns from this call; the
 * front and the holder do, with DETACHMENT filled.  Returns 0, or -1 with ERROR filled: process
 * REQUEST->owner does not exist, for instance. */
int detach_start(struct detachment *detachment, const struct request *request, struct error *error);

/* In the holder, once REQUEST's LOCKS are held: leave the caller's directory, and close its
 * descriptors.  Returns 0, or -1 with ERROR filled: the names of the locks cannot be made absolute,
 * so the locks could not be released from elsewhere. */
int detach_leave(struct detachment *detachment, const struct request *request,
    const struct lock *locks, struct error *error);

#endif
