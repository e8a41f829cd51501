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

/* The same, but a text that does not fit loses its middle. */
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

/* The LENGTH bytes at WORDS, strings that each end in a zero, as an array. */
void json_words(FILE *out, const char *words, size_t length);

/* Write a member of an object, and a comma.  A TEXT of NULL and a NUMBER that is not KNOWN become
 * null. */
void json_text(FILE *out, const char *key, const char *text);
void json_number(FILE *out, const char *key, long long number, bool known);

/* The decimal number in TEXT, from 0 to MOST, or -1.  As for flock(1), blanks and a sign may
 * precede it: " 8" is what the wc(1) of some systems prints. */
long text_number(const char *text, long most);

/* FNV-1a of TEXT. */
static inline uint64_t text_hash(const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

/* The rest of LINE after WORD and a blank; "" if LINE is WORD alone; NULL if LINE does not begin
 * with WORD. */
const char *text_after_word(const char *line, const char *word);

/* Begin with {.word = WORD, .length = its bytes}. */
struct similar {
	const char *word; /* what was typed; its first LENGTH bytes count */
	size_t length;
	char best[48]; /* the candidate with the fewest edits, and their number */
	unsigned edits;
	char hint[96];
};

/* Compare the word with CANDIDATE.  An edit is a letter inserted, removed or replaced, or two
 * letters swapped; a candidate is near if it takes one edit, or at most one for three letters. */
void similar_try(struct similar *similar, const char *candidate);

/* "; did you mean PREFIXbestSUFFIX?", or "" if no candidate was near.  The text lives as long as
 * SIMILAR. */
const char *similar_hint(struct similar *similar, const char *prefix, const char *suffix);

#endif
