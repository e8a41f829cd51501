/* SPDX-License-Identifier: MIT */
/* run/notes.h - why a lock is held or waited for (--note), read from the command line of the
 * semlock that does so. */
#ifndef SEMLOCK_RUN_NOTES_H
#define SEMLOCK_RUN_NOTES_H

#include "owners/owners.h"

/* Fill in the note of each owner in FOUND whose semlock runs on this machine. */
void notes_read(struct owners *found);

#endif
