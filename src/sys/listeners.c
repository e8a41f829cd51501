/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/listeners.h"

/* ---- ask the kernel, by sock_diag(7); <linux/unix_diag.h> is not installed everywhere ---- */

enum {
	NETLINK_DIAG = 4,
	DIAG_BY_FAMILY = 20,
	MESSAGE_DONE = 3,
	REQUEST_DUMP = 0x301,
	STATE_LISTENS = 10,
	SHOW_NAME = 1,
	SHOW_USER = 0x40,
	PART_NAME = 0,
	PART_USER = 7
};

struct message {
	uint32_t length; /* of the message, with this header */
	uint16_t type, flags;
	uint32_t sequence, port;
};

struct question {
	struct message message;
	uint8_t family, protocol;
	uint16_t unused;
	uint32_t states, inode, show, cookie[2];
};

/* Parts follow the answer.  Each begins with its length and type, and is padded to a multiple of
 * four bytes. */
struct answer {
	struct message message;
	uint8_t family, type, state, unused;
	uint32_t inode, cookie[2];
};

struct part {
	uint16_t length, type;
};

enum { NAME_SIZE = sizeof((struct sockaddr_un *)NULL)->sun_path };

static size_t aligned(size_t length)
{
	return (length + 3) & ~(size_t)3;
}

/* Find an abstract name, and the user, in PARTS (SIZE bytes).  Returns false if there is no
 * abstract name. */
static bool read_parts(const char *parts, size_t size, char name[NAME_SIZE], uid_t *user)
{
	struct part part;
	const char *text;
	size_t length;
	uint32_t number;
	bool named = false;

	*user = (uid_t)-1;
	for (size_t at = 0; at + sizeof part < size; at += aligned(part.length)) {
		memcpy(&part, parts + at, sizeof part);
		if (part.length <= sizeof part || part.length > size - at)
			return false;
		text = parts + at + sizeof part;
		length = part.length - sizeof part;
		if (part.type == PART_USER && length == sizeof number) {
			memcpy(&number, text, sizeof number);
			*user = (uid_t)number;
		} else if (part.type == PART_NAME) {
			if (*text != '\0' || length > NAME_SIZE)
				return false;
			memcpy(name, text + 1, length - 1);
			name[length - 1] = '\0';
			named = true;
		}
	}
	return named;
}

/* How far the kernel's answer is after a piece of it. */
enum progress { GOES_ON, IS_WHOLE, REFUSED };

/* Call SEE for each socket in a piece of the kernel's answer, SIZE bytes. */
static enum progress see_piece(const char *piece, size_t size,
    bool (*see)(const char *name, uid_t user, void *context), void *context)
{
	char name[NAME_SIZE];
	uid_t user;
	struct message message;

	for (size_t at = 0; at + sizeof message <= size; at += aligned(message.length)) {
		memcpy(&message, piece + at, sizeof message);
		if (message.type == MESSAGE_DONE)
			return IS_WHOLE;
		if (message.type != DIAG_BY_FAMILY || message.length < sizeof(struct answer) ||
		    message.length > size - at)
			return REFUSED;
		if (read_parts(piece + at + sizeof(struct answer),
			message.length - sizeof(struct answer), name, &user) &&
		    !see(name, user, context))
			return IS_WHOLE;
	}
	return GOES_ON;
}

/* Call SEE with what sock_diag(7) answers.  Returns false if that is refused, or breaks off. */
static bool each_by_diag(bool (*see)(const char *name, uid_t user, void *context), void *context)
{
	const struct question question = {
	    .message = {sizeof question, DIAG_BY_FAMILY, REQUEST_DUMP, 0, 0},
	    .family = AF_UNIX,
	    .states = 1 << STATE_LISTENS,
	    .show = SHOW_NAME | SHOW_USER,
	};
	const int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_DIAG);
	enum progress progress = REFUSED;
	char piece[8192];
	ssize_t got;

	if (kernel < 0)
		return false;
	if (send(kernel, &question, sizeof question, 0) == (ssize_t)sizeof question)
		progress = GOES_ON;
	while (progress == GOES_ON) { /* recv(2) itself prepares each piece: no need to wait */
		got = recv(kernel, piece, sizeof piece, MSG_DONTWAIT);
		progress = got > 0 ? see_piece(piece, (size_t)got, see, context) : REFUSED;
	}
	close(kernel);
	return progress == IS_WHOLE;
}

/* ---- else read /proc/net/unix, which lists every socket, perhaps thousands ---- */

/* A line: "Num RefCount Protocol Flags Type St Inode @NAME". */
static void each_by_procfs(bool (*see)(const char *name, uid_t user, void *context), void *context)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	char line[512], name[NAME_SIZE + 1];
	bool goes_on = sockets != NULL;
	unsigned flags;

	while (goes_on && fgets(line, sizeof line, sockets) != NULL)
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @%108s", &flags, name) == 2 &&
		    flags == 0x10000) /* it listens; its connections have the same name */
			goes_on = see(name, (uid_t)-1, context);
	if (sockets != NULL)
		fclose(sockets);
}

void listeners_each(bool (*see)(const char *name, uid_t user, void *context), void *context)
{
	if (!each_by_diag(see, context))
		each_by_procfs(see, context);
}
