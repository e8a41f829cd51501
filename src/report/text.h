/* report/text.h - other people's words, made safe to print. */
#ifndef SEMLOCK_REPORT_TEXT_H
#define SEMLOCK_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The length in bytes of the character at TEXT, of which LEFT bytes are there: 1 to 4 for
 * well-formed UTF-8, 0 for anything else. */
size_t text_character(const char *text, size_t left);

/* Is the character at TEXT, of LENGTH bytes by text_character(), one that leaves a terminal and the
 * order of the characters around it as they are?  Not: C0, DEL, C1, bidi controls, line separators. */
bool text_harmless(const char *text, size_t length);

/* Copy the LENGTH bytes at FROM into TEXT (SIZE bytes, always ended by a zero), at most
 * COLUMNS characters of them.  What could steer a terminal, and what is not UTF-8, becomes a
 * question mark; what does not fit is cut between two characters, and ends in "...". */
void text_printable(char *text, size_t size, const char *from, size_t length, size_t columns);

/* Write NUMBER at AT in hexadecimal, with a zero behind it, in at most 17 bytes.  Returns where
 * that zero is.  What every start needs does without stdio. */
char *text_hex(char *at, unsigned long long number);

#endif
