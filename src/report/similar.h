/* SPDX-License-Identifier: MIT */
/* report/similar.h - "did you mean ...?", for an unknown word.  Used at failure only. */
#ifndef SEMLOCK_REPORT_SIMILAR_H
#define SEMLOCK_REPORT_SIMILAR_H

#include <stddef.h>

/* Begin with {.word = WORD, .length = its bytes}. */
struct similar {
	const char *word; /* what was typed; its first LENGTH bytes count */
	size_t length;
	char best[48];    /* the candidate with the fewest edits, and their number */
	unsigned edits;
	char hint[96];
};

/* Compares the word with CANDIDATE.  An edit is a letter more or less, another letter, or two that changed places;
 * a candidate is near if it takes one edit in three letters at most. */
void similar_try(struct similar *similar, const char *candidate);

/* "; did you mean PREFIXbestSUFFIX?", or "" if no candidate was near.  The text lives as long as SIMILAR. */
const char *similar_hint(struct similar *similar, const char *prefix, const char *suffix);

#endif
