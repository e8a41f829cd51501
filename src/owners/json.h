/* owners/json.h - the little of JSON that --who writes. */
#ifndef SEMLOCK_OWNERS_JSON_H
#define SEMLOCK_OWNERS_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The LENGTH bytes at TEXT as a string, quotes included.  What is not UTF-8 becomes U+FFFD:
 * a JSON text has no other way to say it.  What is not text_harmless() is escaped. */
void json_string(FILE *out, const char *text, size_t length);

/* A moment, nanoseconds after 1970, in UTC: "2026-11-21T01:47:01Z"; 0: null. */
void json_moment(FILE *out, int64_t moment);

/* An array of LENGTH bytes of strings, each ended by a zero. */
void json_words(FILE *out, const char *words, size_t length);

#endif
