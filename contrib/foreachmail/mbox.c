/* mbox.c - cut an mbox into its messages.  The rule is in mbox.h. */
#include <config.h>

#include "mbox.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* What begins at a line's start.  UNSURE: too little of it has been read. */
enum line { TEXT, BLANK, SEPARATOR, QUOTED, UNSURE };

void mbox_start(struct mbox *box, int fd, bool unquote, void (*wait)(int fd))
{
	memset(box, 0, sizeof *box);
	box->fd = fd;
	box->unquote = unquote;
	box->wait = wait;
	box->line_start = true;
	box->after_blank = true;
}

/* Notes what complete() needs: how lines end here, and how the input does. */
static void remember_end(struct mbox *box, const char *data, size_t size)
{
	for (size_t i = size; i > 0; i--)
		if (data[i - 1] == '\n') {
			box->crlf = (i > 1 ? data[i - 2] : box->last[2]) == '\r';
			break;
		}
	for (size_t i = size > 3 ? size - 3 : 0; i < size; i++) {
		box->last[0] = box->last[1];
		box->last[1] = box->last[2];
		box->last[2] = data[i];
	}
}

/* At the end of the input: add the line end and the blank line that it lacks. */
static void complete(struct mbox *box)
{
	const char *line_end = box->crlf ? "\r\n" : "\n";
	const size_t size = strlen(line_end);
	bool ended = box->last[2] == '\n';
	bool blank = ended && (box->last[1] == '\n' || !memcmp(box->last, "\n\r", 2));

	box->eof = true;
	if (box->consumed + (box->end - box->start) == 0)
		return;
	for (int lacking = !ended + !blank; lacking; lacking--) {
		memcpy(box->window + box->end, line_end, size);
		box->end += size;
	}
}

/* Reads more behind the contents of the window.  Returns -1 with errno set on failure; at the end
 * of the input eof is set. */
static int read_more(struct mbox *box)
{
	ssize_t n;

	if (box->start) {
		memmove(box->window, box->window + box->start, box->end - box->start);
		box->end -= box->start;
		box->start = 0;
	}
	do {
		box->wait(box->fd);
		n = read(box->fd, box->window + box->end, MBOX_WINDOW - box->end);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n < 0)
		return -1;
	remember_end(box, box->window + box->end, (size_t)n);
	box->end += (size_t)n;
	if (n == 0)
		complete(box);
	return 0;
}

static void consume(struct mbox *box, size_t size)
{
	box->start += size;
	box->consumed += size;
}

/* Do the `size` bytes at `data` begin with `prefix`, or could they if there were more? */
static enum line begins_with(const char *data, size_t size, const char *prefix, enum line what)
{
	const size_t length = strlen(prefix);

	if (memcmp(data, prefix, size < length ? size : length) != 0)
		return TEXT;
	return size < length ? UNSURE : what;
}

/* SEPARATOR when `data` looks like the first line of a header: a field name and its colon. */
static enum line header_line(const char *data, size_t size)
{
	size_t i = 0;

	while (i < size && data[i] > ' ' && data[i] < 127 && data[i] != ':')
		i++;
	if (i == size)
		return UNSURE;
	if (i && data[i] == ':')
		return SEPARATOR;
	return begins_with(data, size, ">From ", SEPARATOR); /* a relay's mark */
}

static enum line separator_line(const char *data, size_t size)
{
	enum line kind = begins_with(data, size, "From ", SEPARATOR);
	const char *end;

	if (kind != SEPARATOR)
		return kind;
	end = memchr(data, '\n', size);
	return end ? header_line(end + 1, size - (size_t)(end + 1 - data)) : UNSURE;
}

static enum line quoted_line(const char *data, size_t size)
{
	size_t i = 0;

	while (i < size && data[i] == '>')
		i++;
	return begins_with(data + i, size - i, "From ", QUOTED);
}

/* What is the line that begins at data[0], of which `size` bytes have been read so far? */
static enum line guess_line(const struct mbox *box, const char *data, size_t size)
{
	switch (data[0]) {
	case '\n':
		return BLANK;
	case '\r':
		return size < 2 ? UNSURE : data[1] == '\n' ? BLANK : TEXT;
	case 'F':
		return box->after_blank && !box->first_line ? separator_line(data, size) : TEXT;
	case '>':
		return box->unquote && !box->in_header ? quoted_line(data, size) : TEXT;
	default:
		return TEXT;
	}
}

/* What is the line that begins at window[at]?  at < end.  UNSURE when more has to be read. */
static enum line line_kind(const struct mbox *box, size_t at)
{
	const size_t size = box->end - at;
	const bool is_all = box->eof || size >= MBOX_LOOK;
	/* Not beyond MBOX_LOOK, even if more is here: the size of reads must not change what a line is. */
	enum line kind = guess_line(box, box->window + at, size < MBOX_LOOK ? size : MBOX_LOOK);

	return kind == UNSURE && is_all ? TEXT : kind;
}

/* Pass over the rest of the line at window[at], or over what there is of it. */
static size_t pass_line(struct mbox *box, size_t at, bool blank)
{
	const char *end = memchr(box->window + at, '\n', box->end - at);

	box->line_start = end != NULL;
	box->after_blank = end && blank;
	box->first_line = box->first_line && !end;
	return end ? (size_t)(end + 1 - box->window) : box->end;
}

/* Pass over the lines that belong to one piece.  Returns where it ends, and in *kind what is there. */
static size_t scan(struct mbox *box, enum line *kind)
{
	const bool header = box->in_header;
	size_t at = box->start;

	*kind = TEXT;
	while (at < box->end) {
		*kind = box->line_start ? line_kind(box, at) : TEXT;
		if (*kind != TEXT && *kind != BLANK)
			break;
		at = pass_line(box, at, *kind == BLANK);
		if (*kind == BLANK && header) {
			box->in_header = false;
			break;
		}
	}
	return at;
}

int mbox_piece(struct mbox *box, struct mbox_piece *piece)
{
	enum line kind;
	size_t at;

	for (;;) {
		if (box->start == box->end && !box->eof && read_more(box) < 0)
			return -1;
		piece->header = box->in_header;
		at = scan(box, &kind);
		if (at > box->start)
			break;
		if (kind == QUOTED) {
			consume(box, 1);
			box->line_start = false;
		} else if (kind != UNSURE) {
			return 0;
		} else if (read_more(box) < 0) {
			return -1;
		}
	}
	piece->data = box->window + box->start;
	piece->size = at - box->start;
	consume(box, piece->size);
	return 1;
}

/* Keep the rest of the `From ' line, up to a byte that cannot stand in an environment. */
static int keep_from_line(struct mbox *box)
{
	const char *line;
	size_t size = 0;

	box->from[0] = '\0';
	for (;;) {
		line = box->window + box->start;
		size = box->end - box->start;
		if (memchr(line, '\n', size) || size >= MBOX_FROM_SHOWN + 5 || box->eof)
			break;
		if (read_more(box) < 0)
			return -1;
	}
	if (begins_with(line, size, "From ", SEPARATOR) != SEPARATOR)
		return 0;
	line += 5;
	size = size - 5 < MBOX_FROM_SHOWN ? size - 5 : MBOX_FROM_SHOWN;
	memcpy(box->from, line, size);
	box->from[size] = '\0';
	box->from[strcspn(box->from, "\r\n")] = '\0';
	return 0;
}

/* The input may begin with blank lines: they belong to no message. */
static int skip_blank_lines(struct mbox *box)
{
	for (;;) {
		enum line kind = UNSURE;

		if (box->start < box->end)
			kind = line_kind(box, box->start);
		if (kind == BLANK)
			consume(box, box->window[box->start] == '\r' ? 2 : 1);
		else if (kind != UNSURE || box->eof)
			return 0;
		else if (read_more(box) < 0)
			return -1;
	}
}

int mbox_next(struct mbox *box)
{
	struct mbox_piece rest;
	int r;

	if (box->consumed == 0 && box->start == box->end)
		r = skip_blank_lines(box);
	else
		while ((r = mbox_piece(box, &rest)) > 0)
			;
	if (r < 0)
		return -1;
	if (box->start == box->end)
		return 0;
	box->first_line = true;
	box->in_header = true;
	box->offset = box->consumed;
	return keep_from_line(box) < 0 ? -1 : 1;
}

/* Is the header line at `line` the field `name` with the value `value`?  Blanks round it and a
 * line end do not count. */
static bool is_field(const char *line, size_t size, const char *name, const char *value)
{
	const size_t name_size = strlen(name), value_size = strlen(value);

	if (size <= name_size || strncasecmp(line, name, name_size) != 0 || line[name_size] != ':')
		return false;
	line += name_size + 1;
	size -= name_size + 1;
	while (size && (line[0] == ' ' || line[0] == '\t')) {
		line++;
		size--;
	}
	while (size && strchr(" \t\r\n", line[size - 1]) && line[size - 1])
		size--;
	return size == value_size && !memcmp(line, value, size);
}

int mbox_has_field(struct mbox *box, const char *name, const char *value)
{
	size_t seen = 0; /* bytes of the header that have been looked at, whole lines */

	for (;;) {
		const char *line = box->window + box->start + seen;
		size_t all = box->end - box->start;
		size_t left = (all < MBOX_LOOK ? all : MBOX_LOOK) - seen;
		const char *end = memchr(line, '\n', left);
		size_t size = end ? (size_t)(end + 1 - line) : left;

		if (!end && !box->eof && all < MBOX_LOOK) {
			if (read_more(box) < 0)
				return -1;
			continue;
		}
		if (!end || size == 1 || (size == 2 && line[0] == '\r'))
			return 0;
		if (is_field(line, size, name, value))
			return 1;
		seen += size;
	}
}
