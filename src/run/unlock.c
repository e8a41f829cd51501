/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "lock/method.h"
#include "run/run.h"

int job_unlock(struct job *job, struct error *error)
{
	struct lock *lock = job->locks;

	if (lock->spec->method->open(lock, error) != 0)
		return -1;
	/* a new descriptor is not locked */
	return lock->spec->name == NULL ? lock->spec->method->drop(lock, error) : 0;
}
