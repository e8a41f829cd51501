/* SPDX-License-Identifier: MIT */
/* report/text.h - foreign text made safe for a terminal, and for JSON; numbers in text; "did you
 * mean ...?" for an unknown word. */
#ifndef SEMLOCK_REPORT_TEXT_H
#define SEMLOCK_REPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The length in bytes of the character at TEXT, with LEFT bytes to the end of the text: 1 to 4 for
 * well-formed UTF-8, 0 for anything else. */
size_t text_character(const char *text, size_t left);

/* May the character at TEXT, of LENGTH bytes by text_character(), be printed?  No for C0, DEL, C1,
 * bidi controls and line separators, which control a terminal or reorder the text around them. */
bool text_harmless(const char *text, size_t length);

/* Copy the LENGTH bytes at FROM into TEXT (SIZE bytes, always ended by a zero), at most
 * COLUMNS characters of them.  A character that is not text_harmless(), or not UTF-8, becomes a
 * question mark; a text that does not fit is cut between two characters, and ends in "...". */
void text_printable(char *text, size_t size, const char *from, size_t length, size_t columns);

/* Like text_printable(), but if the text does not fit, replace its middle with "...". */
void text_cut_middle(char *text, size_t size, const char *from, size_t length, size_t columns);

/* The columns that TEXT takes, at most MOST: its characters, as text_printable() counts them. */
size_t text_columns(const char *text, size_t most);

/* Copy WORD into TEXT (SIZE bytes) so that a shell reads it as that one word: in single quotes if
 * it needs them.  Cut, without a closing quote, if it does not fit. */
void text_for_shell(char *text, size_t size, const char *word);

/* A note tells people why a lock is held, in at most 200 bytes. */
enum { NOTE_SIZE = 201 };

/* Copy NOTE into TEXT as text_printable() does; "" for NULL. */
void text_note(char text[NOTE_SIZE], const char *note);

/* Write the LENGTH bytes at TEXT as a string of JSON, quotes included.  A byte that is not UTF-8
 * becomes U+FFFD; a character that is not text_harmless() is escaped. */
void json_string(FILE *out, const char *text, size_t length);

/* Write the LENGTH bytes at WORDS, strings that each end in a zero, as an array of JSON. */
void json_words(FILE *out, const char *words, size_t length);

/* Write the member KEY of a JSON object, and a comma.  If TEXT is NULL, or NUMBER is not KNOWN, the
 * value is null. */
void json_text(FILE *out, const char *key, const char *text);
void json_number(FILE *out, const char *key, long long number, bool known);

/* Returns the decimal number in TEXT, from 0 to MOST; or -1 if TEXT is anything else.  As with
 * flock(1), blanks and a sign may precede the number: the wc(1) of some systems prints " 8". */
long text_number(const char *text, long most);

/* The hash of TEXT, by FNV-1a. */
static inline uint64_t text_hash(const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

/* Returns the rest of LINE after WORD and a blank; "" if LINE is WORD alone; NULL if LINE does not
 * begin with WORD. */
const char *text_after_word(const char *line, const char *word);

/* The search for a word similar to one that was typed.  Initialise it with {.word = WORD, .length =
 * its bytes}. */
struct similar {
	const char *word; /* what was typed; its first LENGTH bytes count */
	size_t length;
	char best[48]; /* the near candidate that takes the fewest edits (EDITS); "": none */
	unsigned edits;
	char hint[96];
};

/* Compare the typed word with CANDIDATE.  An edit inserts, removes or replaces a letter, or swaps
 * two neighbours.  CANDIDATE is near if it is one edit away, or at most one edit for every three
 * letters of the typed word. */
void similar_try(struct similar *similar, const char *candidate);

/* Returns "; did you mean X?", where X is PREFIX, the nearest candidate and SUFFIX; or "" if no
 * candidate was near.  The text lives as long as SIMILAR. */
const char *similar_hint(struct similar *similar, const char *prefix, const char *suffix);

#endif
