/* SPDX-License-Identifier: MIT */
/* The lines of a semlock-locksmith, as semlock reads them: cut into lines from pieces of any
 * length, and numbers parsed out of them. */
#include <config.h>

#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"
#include "methods/server/locksmith.h"
#include "report/text.h"

enum { ROOM = 32768 }; /* less than a pipe takes without a reader */

static void one_line(struct locksmith *smith, const char *line)
{
	static const char *const words[] = {"OK", "WAIT", "BUSY", "ERR", "HELD", "LOST"};
	size_t length = strlen(line), known = 0;
	const char *rest;

	MUST(length < LOCKSMITH_LINE && strchr(line, '\n') == NULL);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		rest = text_after_word(line, words[i]);
		MUST(rest == NULL || (rest > line && rest <= line + length));
		known += rest != NULL;
	}
	MUST(known <= 1);
	locksmith_note(smith, line);
	MUST(smith->lease >= 0 && smith->deadline >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct locksmith smith = {.in = -1, .monitor = -1, .out = -1};
	const struct deadline never = deadline_never();
	const char *line;
	int ends[2];

	size = size < ROOM ? size : ROOM;
	if (pipe(ends) != 0)
		exit(EXIT_FAILURE);
	if (size > 0 && write(ends[1], data, size) != (ssize_t)size)
		exit(EXIT_FAILURE);
	close(ends[1]);
	smith.out = ends[0];
	while (locksmith_line(&smith, &never, &line) == LINE_READ)
		one_line(&smith, line);
	locksmith_forget(&smith, false);
	return 0;
}
