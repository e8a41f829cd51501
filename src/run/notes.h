/* SPDX-License-Identifier: MIT */
/* run/notes.h - why a semlock holds a lock, or waits for it (--note), read from that semlock's
 * command line. */
#ifndef SEMLOCK_RUN_NOTES_H
#define SEMLOCK_RUN_NOTES_H

#include "owners/owners.h"

/* Fill in the note of each owner in FOUND whose semlock runs on this machine. */
void notes_read(struct owners *found);

#endif
