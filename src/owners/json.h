/* SPDX-License-Identifier: MIT */
/* owners/json.h - the parts of JSON that --who writes. */
#ifndef SEMLOCK_OWNERS_JSON_H
#define SEMLOCK_OWNERS_JSON_H

#include <stddef.h>
#include <stdio.h>

/* The LENGTH bytes at TEXT as a string, quotes included.  A byte that is not UTF-8 becomes U+FFFD;
 * a character that is not text_harmless() is escaped. */
void json_string(FILE *out, const char *text, size_t length);

/* The LENGTH bytes at WORDS, strings that each end in a zero, as an array. */
void json_words(FILE *out, const char *words, size_t length);

#endif
