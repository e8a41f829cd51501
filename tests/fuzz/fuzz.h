/* SPDX-License-Identifier: MIT */
/* fuzz.h - what the fuzzing harnesses share.
 *
 * A harness is one file, with one function that hands any bytes to a parser and checks the result.
 * "make fuzz" links it with clang's libFuzzer, which invents the bytes; "make check" links it with
 * replay.c, which takes them from tests/fuzz/seeds. */
#ifndef SEMLOCK_FUZZ_H
#define SEMLOCK_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests the parser with SIZE bytes at DATA.  Returns 0; aborts if the parser is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition on the parser's result: an assert() that no build leaves out. */
#define MUST(e) \
	do { \
		if (!(e)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #e); \
			abort(); \
		} \
	} while (0)

/* A copy of the SIZE bytes at DATA, with a zero behind it, of just that size, so that the
 * sanitizers see a read beyond the end.  The caller frees the copy. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (text == NULL)
		exit(EXIT_FAILURE);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
