/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

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
	/* Overlong, a surrogate, or past U+10FFFF. */
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
		return !(bytes[0] == 0xc2 && bytes[1] < 0xa0) && !(bytes[0] == 0xd8 && bytes[1] == 0x9c);
	if (length == 3 && bytes[0] == 0xe2 && bytes[1] == 0x80) /* U+200E, U+200F, U+2028 to U+202E */
		return bytes[2] != 0x8e && bytes[2] != 0x8f && (bytes[2] < 0xa8 || bytes[2] > 0xae);
	if (length == 3 && bytes[0] == 0xe2 && bytes[1] == 0x81) /* U+2066 to U+2069 */
		return bytes[2] < 0xa6 || bytes[2] > 0xa9;
	return length != 0;
}

/* CUT: the last offset at which "..." still fits. */
void text_printable(char *text, size_t size, const char *from, size_t length, size_t columns)
{
	size_t used = 0, cut = 0, shown = 0, step;

	while (length > 0 && shown < columns) {
		step = text_character(from, length);
		if (used + (step == 0 ? 1 : step) >= size)
			break;
		if (shown + 3 <= columns && used + 3 < size)
			cut = used;
		if (text_harmless(from, step))
			memcpy(text + used, from, step);
		else
			text[used] = '?';
		used += text_harmless(from, step) ? step : 1;
		step = step == 0 ? 1 : step;
		from += step;
		length -= step;
		shown++;
	}
	if (length > 0 && columns >= 3 && size >= 4) {
		memcpy(text + cut, "...", 3);
		used = cut + 3;
	}
	text[used] = '\0';
}
