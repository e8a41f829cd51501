/* SPDX-License-Identifier: MIT */
/* run/notes.h - why a lock is held, or waited for (--note), as the command line of the semlock that
 * does so says it. */
#ifndef SEMLOCK_RUN_NOTES_H
#define SEMLOCK_RUN_NOTES_H

#include "owners/owners.h"

/* Fill in the notes of those of FOUND whose semlock is on this machine, and lives. */
void notes_read(struct owners *found);

#endif
