/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report/text.h"

static size_t length_by_first_byte(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if ((first & 0xf0) == 0xe0)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

size_t text_character(const char *text, size_t left)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = left == 0 ? 0 : length_by_first_byte(bytes[0]);

	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	/* Refuse an overlong form, a surrogate, and a number past U+10FFFF. */
	if ((bytes[0] == 0xe0 && bytes[1] < 0xa0) || (bytes[0] == 0xed && bytes[1] > 0x9f) ||
	    (bytes[0] == 0xf0 && bytes[1] < 0x90) || (bytes[0] == 0xf4 && bytes[1] > 0x8f))
		return 0;
	return length;
}

bool text_harmless(const char *text, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)text;

	if (length == 1)
		return bytes[0] >= 0x20 && bytes[0] != 0x7f;
	if (length == 2) /* C1: U+0080 to U+009F; the Arabic letter mark: U+061C */
		return !(bytes[0] == 0xc2 && bytes[1] < 0xa0) &&
		       !(bytes[0] == 0xd8 && bytes[1] == 0x9c);
	/* U+200E, U+200F, U+2028 to U+202E */
	if (length == 3 && bytes[0] == 0xe2 && bytes[1] == 0x80)
		return bytes[2] != 0x8e && bytes[2] != 0x8f && (bytes[2] < 0xa8 || bytes[2] > 0xae);
	if (length == 3 && bytes[0] == 0xe2 && bytes[1] == 0x81) /* U+2066 to U+2069 */
		return bytes[2] < 0xa6 || bytes[2] > 0xa9;
	return length != 0;
}

/* CUT: the last offset at which "..." still fits. */
void text_printable(char *text, size_t size, const char *from, size_t length, size_t columns)
{
	size_t used = 0, cut = 0, shown = 0, step;
	bool harmless;

	for (; length > 0 && shown < columns; from += step, length -= step, shown++) {
		step = text_character(from, length);
		harmless = text_harmless(from, step);
		step = step == 0 ? 1 : step;
		if (used + step >= size)
			break;
		if (shown + 3 <= columns && used + 3 < size)
			cut = used;
		if (harmless)
			memcpy(text + used, from, step);
		else
			text[used] = '?';
		used += harmless ? step : 1;
	}
	if (length > 0 && columns >= 3 && size >= 4) {
		memcpy(text + cut, "...", 3);
		used = cut + 3;
	}
	text[used] = '\0';
}

size_t text_columns(const char *text, size_t most)
{
	size_t left = strlen(text), columns = 0, step;

	for (; left > 0 && columns < most; columns++) {
		step = text_character(text, left);
		step = step == 0 ? 1 : step;
		text += step;
		left -= step;
	}
	return columns;
}

void text_cut_middle(char *text, size_t size, const char *from, size_t length, size_t columns)
{
	enum { DOTS = 3 };
	size_t all = 0, skipped = 0, head, step, used;

	for (size_t at = 0; at < length; at += step == 0 ? 1 : step, all++)
		step = text_character(from + at, length - at);
	if (all <= columns || columns <= DOTS + 1) {
		text_printable(text, size, from, length, columns);
		return;
	}
	head = (columns - DOTS) / 2;
	text_printable(text, size, from, length, head + DOTS);
	used = strlen(text);
	for (; skipped < all - (columns - DOTS - head); skipped++) {
		step = text_character(from, length);
		step = step == 0 ? 1 : step;
		from += step;
		length -= step;
	}
	text_printable(text + used, size - used, from, length, columns);
}

void text_for_shell(char *text, size_t size, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=:,./@%";
	static const char quote[] = "'\\''";
	size_t used = 0;

	if (*word != '\0' && word[strspn(word, plain)] == '\0') {
		snprintf(text, size, "%s", word);
		return;
	}
	text[used++] = '\'';
	for (; *word != '\0' && used + sizeof quote + 1 <= size; word++)
		if (*word == '\'')
			used += (size_t)snprintf(text + used, size - used, "%s", quote);
		else
			text[used++] = *word;
	if (*word == '\0')
		text[used++] = '\'';
	text[used] = '\0';
}

void text_note(char text[NOTE_SIZE], const char *note)
{
	text_printable(text, NOTE_SIZE, note, note == NULL ? 0 : strlen(note), NOTE_SIZE - 1);
}

/* The number of the character at TEXT: well-formed UTF-8 of LENGTH bytes, at most three. */
static unsigned code_point(const char *text, size_t length)
{
	unsigned point = (unsigned char)text[0] & (length == 1 ? 0x7f : 0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((unsigned char)text[i] & 0x3f);
	return point;
}

void json_string(FILE *out, const char *text, size_t length)
{
	size_t step;

	putc('"', out);
	for (; length > 0; text += step, length -= step) {
		step = text_character(text, length);
		if (step == 0)
			fputs("\\ufffd", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (!text_harmless(text, step))
			fprintf(out, "\\u%04x", code_point(text, step));
		else
			fwrite(text, 1, step, out);
		step = step == 0 ? 1 : step;
	}
	putc('"', out);
}

void json_words(FILE *out, const char *words, size_t length)
{
	putc('[', out);
	for (size_t at = 0, word; at < length; at += word + 1) {
		word = strnlen(words + at, length - at);
		fputs(at == 0 ? "" : ", ", out);
		json_string(out, words + at, word);
	}
	putc(']', out);
}

void json_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, text == NULL ? "\"%s\": null" : "\"%s\": ", key);
	if (text != NULL)
		json_string(out, text, strlen(text));
	fputs(", ", out);
}

void json_number(FILE *out, const char *key, long long number, bool known)
{
	fprintf(out, known ? "\"%s\": %lld, " : "\"%s\": null, ", key, number);
}

const char *text_after_word(const char *line, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(line, word, length) != 0)
		return NULL;
	if (line[length] == '\0')
		return line + length;
	return line[length] == ' ' ? line + length + 1 : NULL;
}

long text_number(const char *text, long most)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	return end > text && *end == '\0' && errno == 0 && value >= 0 && value <= most ? value : -1;
}

/* ---- did you mean ...? ---- */

enum { LONGEST = 32 }; /* letters; every option, method, signal and scheme is shorter */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many edits lead from A to B (optimal string alignment), without regard to case. */
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
	if ((edits == 1 || edits <= similar->length / 3) &&
	    (*similar->best == '\0' || edits < similar->edits)) {
		snprintf(similar->best, sizeof similar->best, "%s", candidate);
		similar->edits = edits;
	}
}

const char *similar_hint(struct similar *similar, const char *prefix, const char *suffix)
{
	if (*similar->best != '\0')
		snprintf(similar->hint, sizeof similar->hint, "; did you mean %s%s%s?", prefix,
		    similar->best, suffix);
	return similar->hint;
}
