/* SPDX-License-Identifier: MIT */
/* run/caller_lines.h - --hold --ttl: the lines on standard input by which a caller says that it is
 * there.  Its end alone proves nothing: a connection may end while the caller goes on. */
#ifndef SEMLOCK_RUN_CALLER_LINES_H
#define SEMLOCK_RUN_CALLER_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "sys/deadline.h"

struct caller_lines {
	int64_t time;        /* ns in which a line has to come; 0: none has to */
	struct deadline due; /* of the next one; never, if TIME is 0 */
	char line[256];      /* what has come of it; the rest of a longer one is dropped */
	size_t length;
};

enum caller_says {
	CALLER_LIVES,
	CALLER_RELEASES, /* the line "release" */
	CALLER_IS_GONE   /* an end of input, or an error */
};

/* From now on, a line has to come every TIME ns; 0: none has to. */
void caller_lines_begin(struct caller_lines *lines, int64_t time);

/* Read once from standard input, which must have something to read, or be at its end.  Each whole
 * line of it is echoed on standard output, unless that has no room, and makes the next one due TIME
 * later. */
enum caller_says caller_lines_read(struct caller_lines *lines);

#endif
