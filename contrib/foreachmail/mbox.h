/* mbox.h - cut an mbox into its messages, in constant memory.
 *
 *	mbox_start(&box, fd, ...);
 *	while ((r = mbox_next(&box)) > 0)
 *		while ((r = mbox_piece(&box, &piece)) > 0)
 *			...
 *
 * The rule.  A message begins at the first line that is not blank; and at each later line that
 * begins with `From ', stands after a blank line, and is followed by a line that looks like the
 * first of a header (a field name and a colon, or `>From ').  A blank line is an empty one: LF or
 * CR LF.  Blank lines belong to the message before them.  Neither Content-Length nor MIME matters.
 * At its end a mailbox gets the line end and the blank line that it lacks, so that each message can
 * be appended to a mailbox as it is. */
#ifndef FOREACHMAIL_MBOX_H
#define FOREACHMAIL_MBOX_H

#include <stdbool.h>
#include <stddef.h>

enum {
	MBOX_LOOK = 64 * 1024,  /* bytes that are read ahead at most to classify a line */
	MBOX_WINDOW = 4 * MBOX_LOOK,
	MBOX_COMPLETION = 4,    /* bytes a mailbox may lack at its end: two times CR LF */
	MBOX_FROM_SHOWN = 1000, /* bytes that are kept of the text after `From ' */
};

struct mbox {
	/* For the caller, of the message that mbox_next() began: */
	unsigned long long offset;      /* where it begins, in bytes of the input, from 0 */
	char from[MBOX_FROM_SHOWN + 1]; /* the rest of its `From ' line; "" when it has none */

	/* For mbox.c alone: */
	int fd;
	void (*wait)(int fd);
	bool unquote;
	bool eof;
	bool crlf;              /* the last line read ended so */
	char last[3];           /* the last bytes read */
	size_t start, end;      /* what is in the window and not yet given out */
	unsigned long long consumed;
	bool line_start;        /* window[start] begins a line */
	bool after_blank;       /* ... and the line before it was blank */
	bool in_header;
	bool first_line;        /* of a message: it is no separator again */
	char window[MBOX_WINDOW + MBOX_COMPLETION];
};

struct mbox_piece {
	const char *data; /* stays as it is until the next call */
	size_t size;      /* never 0 */
	bool header;      /* of the header, which its blank line ends; else of the body */
};

/* Begin to read the mailbox at `fd`.  `unquote`: take one > off body lines that begin with one or
 * more of them and `From '.  `wait` is called before each read, and
 * sleeps until there is something to read. */
void mbox_start(struct mbox *box, int fd, bool unquote, void (*wait)(int fd));

/* Go to the next message; what is left of the one before is passed over.
 * Returns 1; 0 at the end of the input; -1 with errno set when it cannot be read. */
int mbox_next(struct mbox *box);

/* Give the next bytes of the message.
 * Returns 1; 0 when the message is at its end; -1 with errno set when it cannot be read. */
int mbox_piece(struct mbox *box, struct mbox_piece *piece);

/* Does the header of the message have the field `name` with just this value?  To be asked right
 * after mbox_next(); looks at the first MBOX_LOOK bytes.
 * Returns 1 or 0; -1 with errno set when the input cannot be read. */
int mbox_has_field(struct mbox *box, const char *name, const char *value);

#endif
