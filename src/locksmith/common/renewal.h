/* SPDX-License-Identifier: MIT */
/* locksmith/common/renewal.h - the life of a lock that is held: OK, START, HELD after each renewal,
 * until semlock releases it or it is lost.  protocol/lease_schedule.h has the timetable. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_RENEWAL_H
#define SEMLOCK_LOCKSMITH_COMMON_RENEWAL_H

#include "locksmith/common/engine.h"

/* Say OK and keep the lock.  Returns 0 when semlock releases it, or -1 if it is lost, with ERROR
 * filled. */
int renewal_hold(struct turn *turn, struct error *error);

#endif
