/* SPDX-License-Identifier: MIT */
/* Command lines and lock names of other users, made safe for a terminal and for JSON. */
#include <config.h>

#include "fuzz.h"
#include "report/text.h"

/* Every character is complete, and none controls a terminal. */
static size_t harmless_characters(const char *text)
{
	size_t left = strlen(text), count = 0, step;

	for (; left > 0; text += step, left -= step, count++) {
		step = text_character(text, left);
		MUST(step > 0);
		MUST(text_harmless(text, step));
	}
	return count;
}

static void for_people(const char *from, size_t length, size_t size, size_t columns)
{
	/* of that size, so that the sanitizers see a write beyond the end */
	char *text = malloc(size);

	if (text == NULL)
		exit(EXIT_FAILURE);
	text_printable(text, size, from, length, columns);
	MUST(strlen(text) < size);
	MUST(harmless_characters(text) <= columns);
	free(text);
}

/* The end of the JSON string that begins at AT. */
static const char *string_end(const char *at)
{
	size_t step;

	MUST(*at == '"');
	for (at++; *at != '"'; at += step) {
		step = *at == '\\' ? 1 : text_character(at, strlen(at));
		MUST(text_harmless(at, step));
		if (*at != '\\')
			continue;
		MUST(at[1] != '\0' && strchr("\"\\u", at[1]) != NULL);
		step = at[1] == 'u' ? 6 : 2;
		MUST(at[1] != 'u' || strspn(at + 2, "0123456789abcdef") >= 4);
	}
	return at + 1;
}

static void for_programs(const char *from, size_t length)
{
	char *json = NULL;
	const char *at;
	size_t size = 0;
	FILE *out = open_memstream(&json, &size);

	if (out == NULL)
		exit(EXIT_FAILURE);
	json_string(out, from, length);
	json_words(out, from, length);
	fclose(out);
	MUST(strlen(json) == size);
	at = string_end(json);
	MUST(*at == '[');
	for (at++; *at != ']'; at += *at == ',' ? 2 : 0)
		at = string_end(at);
	MUST(at[1] == '\0');
	free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	for_people(text, size, size + 4, size);
	for_people(text, size, 16, 10);
	for_people(text, size, 5, 80);
	for_people(text, size, 1, 1);
	for_programs(text, size);
	free(text);
	return 0;
}
