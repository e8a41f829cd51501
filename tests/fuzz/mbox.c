/* foreachmail's mailboxes, of any content: the pieces put together are the input, without leading
 * blank lines and with the lines that its end lacks; each message, read as a mailbox, is that one
 * message; and the size of the reads changes nothing.
 *
 * The linker replaces the system's read() by the one here. */
#include <config.h>

#include <stdbool.h>
#include <unistd.h>

#include "../../contrib/foreachmail/mbox.h"
#include "fuzz.h"

ssize_t __wrap_read(int fd, void *into, size_t size);

static const char *source;
static size_t source_left, bit;

ssize_t __wrap_read(int fd, void *into, size_t size)
{
	(void)fd;
	size = size < source_left ? size : source_left;
	size = size < bit ? size : bit;
	if (size > 0)
		memcpy(into, source, size);
	source += size;
	source_left -= size;
	return (ssize_t)size;
}

static void no_wait(int fd)
{
	(void)fd;
}

enum { MOST = 256 };

struct cut {
	char *text; /* all messages, one after the other */
	size_t size;
	size_t begin[MOST]; /* where each begins in TEXT */
	unsigned long long offset[MOST];
	size_t messages;
};

static struct mbox box;

static void message(struct cut *cut, size_t room)
{
	struct mbox_piece piece;
	bool header = true;

	MUST(strlen(box.from) <= MBOX_FROM_SHOWN && strpbrk(box.from, "\r\n") == NULL);
	MUST(mbox_has_field(&box, "Subject", "a") >= 0);
	while (mbox_piece(&box, &piece) > 0) {
		MUST(piece.size > 0 && cut->size + piece.size <= room);
		MUST(header || !piece.header);
		header = piece.header;
		memcpy(cut->text + cut->size, piece.data, piece.size);
		cut->size += piece.size;
	}
}

static void cut_up(struct cut *cut, const char *text, size_t size, size_t at_once, bool unquote)
{
	size_t room = size + MBOX_COMPLETION;

	*cut = (struct cut){.text = malloc(room)};
	if (cut->text == NULL)
		exit(EXIT_FAILURE);
	source = text;
	source_left = size;
	bit = at_once;
	mbox_start(&box, 0, unquote, no_wait);
	while (cut->messages < MOST && mbox_next(&box) > 0) {
		cut->begin[cut->messages] = cut->size;
		cut->offset[cut->messages++] = box.offset;
		message(cut, room);
	}
}

static void same(const struct cut *a, const struct cut *b)
{
	MUST(a->messages == b->messages && a->size == b->size);
	MUST(a->size == 0 || memcmp(a->text, b->text, a->size) == 0);
	for (size_t i = 0; i < a->messages; i++)
		MUST(a->begin[i] == b->begin[i] && a->offset[i] == b->offset[i]);
}

static bool line_ends(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] != '\n' && text[i] != '\r')
			return false;
	return true;
}

/* The pieces are the whole input. */
static void whole(const struct cut *cut, const char *text, size_t size)
{
	size_t first = cut->messages == 0 ? size : (size_t)cut->offset[0];
	size_t added;

	if (cut->messages == MOST)
		return;
	MUST(first <= size && line_ends(text, first));
	MUST(cut->size >= size - first || cut->messages == 0);
	if (cut->messages == 0)
		return;
	added = cut->size - (size - first);
	MUST(memcmp(cut->text, text + first, size - first) == 0);
	MUST(line_ends(cut->text + cut->size - added, added));
}

static void each_is_one(const struct cut *cut)
{
	struct cut again;

	for (size_t i = 0; i < cut->messages && i < 8; i++) {
		size_t end = i + 1 < cut->messages ? cut->begin[i + 1] : cut->size;
		size_t size = end - cut->begin[i];

		cut_up(&again, cut->text + cut->begin[i], size, size, false);
		MUST(again.messages == 1 && again.size == size);
		free(again.text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct cut at_once, in_bits, unquoted;

	cut_up(&at_once, text, size, size, false);
	cut_up(&in_bits, text, size, 1 + size % 7, false);
	same(&at_once, &in_bits);
	whole(&at_once, text, size);
	each_is_one(&at_once);
	cut_up(&unquoted, text, size, 1 + size % 5, true);
	MUST(unquoted.messages == at_once.messages && unquoted.size <= at_once.size);
	free(at_once.text);
	free(in_bits.text);
	free(unquoted.text);
	free(text);
	return 0;
}
