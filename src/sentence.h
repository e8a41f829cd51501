/* sentence.h - who holds a lock, in words for people. */
#ifndef SEMLOCK_SENTENCE_H
#define SEMLOCK_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "occupants.h"

/* When MOMENT, nanoseconds after 1970, was, in local time and at most 11 characters:
 * "12:01:07" today, "11-20 12:01" this year, "2025-11-20" before. */
void moment_text(int64_t moment, char *text, size_t size);

/* "held by 4242 (rsync -a /srv) since 12:01:07", without a full stop.  Returns false when
 * nobody holds it. */
bool occupants_sentence(const struct occupants *found, char *text, size_t size);

#endif
