/* SPDX-License-Identifier: MIT */
/* run/keeper.h - the process that keeps a hold in the background (detach.h): it starts the holder,
 * and ends it when that is asked for (--release), or when the process ends for which it holds.
 *
 * It sleeps in one poll(2), and wakes up for nothing else; where the kernel has no pidfds, once a
 * second. */
#ifndef SEMLOCK_RUN_KEEPER_H
#define SEMLOCK_RUN_KEEPER_H

#include <stdnoreturn.h>

#include "cli/request.h"
#include "report/error.h"
#include "run/keeper_state.h"

/* In the front: fill KEEPER for REQUEST.  Returns 0, or -1 with ERROR filled when there is no
 * process REQUEST->owner. */
int keeper_begin(struct keeper *keeper, const struct request *request, struct error *error);

/* In the keeper's process: make its ID, and listen.  Returns 0, or -1 with ERROR filled. */
int keeper_listen(struct keeper *keeper, struct error *error);

/* In the keeper's process, without a holder: tell the front of ERROR, and exit. */
noreturn void keeper_fail(const struct keeper *keeper, const struct error *error);

/* Keep the hold until it ends; then exit. */
noreturn void keeper_serve(struct keeper *keeper);

#endif
