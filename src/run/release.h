/* SPDX-License-Identifier: MIT */
/* run/release.h - --release: a hold in the background (detach.h) is ended. */
#ifndef SEMLOCK_RUN_RELEASE_H
#define SEMLOCK_RUN_RELEASE_H

#include "cli/request.h"

/* End the hold REQUEST->release of the first lock of REQUEST, and wait until the next one can
 * enter.  Returns the exit status, with a message unless it is 0: EXIT_LOST if the hold had ended
 * before. */
int release_hold(const struct request *request);

#endif
