/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

#include "owners/json.h"
#include "report/text.h"

/* Of at most three bytes of well-formed UTF-8. */
static unsigned code_point(const char *text, size_t length)
{
	unsigned first = (unsigned char)text[0], rest = 0;

	for (size_t i = 1; i < length; i++)
		rest = rest << 6 | ((unsigned char)text[i] & 0x3f);
	return length == 1 ? first : length == 2 ? (first & 0x1f) << 6 | rest : (first & 0x0f) << 12 | rest;
}

static void json_character(FILE *out, const char *text, size_t length)
{
	if (length == 0)
		fputs("\\ufffd", out);
	else if (*text == '"' || *text == '\\')
		fprintf(out, "\\%c", *text);
	else if (!text_harmless(text, length))
		fprintf(out, "\\u%04x", code_point(text, length));
	else
		fwrite(text, 1, length, out);
}

void json_string(FILE *out, const char *text, size_t length)
{
	size_t step;

	putc('"', out);
	while (length > 0) {
		step = text_character(text, length);
		json_character(out, text, step);
		step = step == 0 ? 1 : step;
		text += step;
		length -= step;
	}
	putc('"', out);
}

void json_words(FILE *out, const char *words, size_t length)
{
	const char *end;
	size_t word;

	putc('[', out);
	while (length > 0) {
		end = memchr(words, '\0', length);
		word = end == NULL ? length : (size_t)(end - words);
		json_string(out, words, word);
		length -= end == NULL ? word : word + 1;
		words += end == NULL ? word : word + 1;
		if (length > 0)
			fputs(", ", out);
	}
	putc(']', out);
}
