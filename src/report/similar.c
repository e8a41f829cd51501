/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "report/similar.h"

enum { LONGEST = 32 }; /* letters; no option, method, signal or scheme has so many */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment, without regard to case. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned d[LONGEST + 1][LONGEST + 1];

	for (size_t i = 0; i <= a_length; i++) {
		for (size_t j = 0; j <= b_length; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = (unsigned)(i + j);
				continue;
			}
			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
			    d[i - 1][j - 1] + (strncasecmp(a + i - 1, b + j - 1, 1) != 0));
			if (i > 1 && j > 1 && strncasecmp(a + i - 1, b + j - 2, 1) == 0 &&
			    strncasecmp(a + i - 2, b + j - 1, 1) == 0)
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a_length][b_length];
}

void similar_try(struct similar *similar, const char *candidate)
{
	size_t length = strlen(candidate);
	unsigned edits;

	if (similar->length > LONGEST || length > LONGEST || length < 2)
		return;
	edits = distance(similar->word, similar->length, candidate, length);
	if ((edits == 1 || edits * 3 <= similar->length) && (*similar->best == '\0' || edits < similar->edits)) {
		snprintf(similar->best, sizeof similar->best, "%s", candidate);
		similar->edits = edits;
	}
}

const char *similar_hint(struct similar *similar, const char *prefix, const char *suffix)
{
	if (*similar->best != '\0')
		snprintf(similar->hint, sizeof similar->hint, "; did you mean %s%s%s?", prefix, similar->best, suffix);
	return similar->hint;
}
