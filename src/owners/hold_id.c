/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "owners/hold_id.h"
#include "sys/files.h"
#include "sys/listeners.h"
#include "sys/process.h"
#include "sys/random.h"

#define SOCKET_PREFIX "semlock-hold-"

enum { LAST_DIGITS = 8 };

unsigned hold_id_digits(pid_t owner)
{
	return (unsigned)owner & 0xffff;
}

int hold_id_make(char text[HOLD_ID_SIZE], pid_t owner, struct error *error)
{
	struct procfs_stat self;
	uint32_t number;

	if (random_fill(&number, sizeof number) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot read random bytes");
	if (!process_numbers_ours() || !process_stat(getpid(), &self))
		self.started = 0;
	snprintf(text, HOLD_ID_SIZE, "%ld-%llu-%08lx", (long)getpid(), self.started,
	    (unsigned long)(number << 16 | hold_id_digits(owner)));
	return 0;
}

bool hold_id_parse(const char *text, struct hold_id *id)
{
	char *end;

	if (!isdigit((unsigned char)*text) || strlen(text) >= HOLD_ID_SIZE)
		return false;
	id->pid = (pid_t)strtol(text, &end, 10);
	if (id->pid <= 0 || end[0] != '-' || !isdigit((unsigned char)end[1]))
		return false;
	id->started = strtoull(end + 1, &end, 10);
	if (end[0] != '-' || strlen(end + 1) != LAST_DIGITS ||
	    strspn(end + 1, "0123456789abcdef") != LAST_DIGITS)
		return false;
	id->owner = (unsigned)strtoul(end + 1, NULL, 16) & 0xffff;
	return true;
}

socklen_t hold_id_address(const char *text, struct sockaddr_un *address)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length =
	    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, SOCKET_PREFIX "%s", text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

const char *hold_id_of_socket(const char *name, struct hold_id *id)
{
	const char *text = name + strlen(SOCKET_PREFIX);

	if (strncmp(name, SOCKET_PREFIX, strlen(SOCKET_PREFIX)) != 0 || !hold_id_parse(text, id))
		return NULL;
	return text;
}

int hold_id_connect(const char *text, struct hold_peer *peer)
{
	struct sockaddr_un address;
	const socklen_t length = hold_id_address(text, &address);
	struct ucred credentials;
	socklen_t size = sizeof credentials;
	int connection = descriptor_above_standard(
	    socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	int result, errnum;

	if (connection < 0)
		return -1;
	UNINTERRUPTED(result, connect(connection, (struct sockaddr *)&address, length));
	if (result == 0)
		result = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
	if (result == 0) {
		*peer = (struct hold_peer){connection, credentials.pid, credentials.uid};
		return 0;
	}
	errnum = errno;
	close(connection);
	errno = errnum;
	return -1;
}

bool hold_peer_is(const struct hold_peer *peer, const struct hold_id *id)
{
	struct procfs_stat seen;

	if (peer->pid != id->pid)
		return false;
	return id->started == 0 || !process_numbers_ours() || !process_stat(peer->pid, &seen) ||
	       seen.started == id->started;
}

struct id_search {
	const struct process *keeper;
	char *text; /* "": not found */
};

/* Has KEEPER made the socket of the ID in TEXT?  The kernel says that USER made it.  Before Linux
 * 5.3 the kernel does not say who did ((uid_t)-1): then connect to the socket. */
static bool has_made(const struct process *keeper, uid_t user, const char *text,
    const struct hold_id *id)
{
	struct hold_peer peer;

	if (user != (uid_t)-1)
		return user == keeper->user;
	if (hold_id_connect(text, &peer) != 0)
		return false;
	close(peer.connection);
	return hold_peer_is(&peer, id);
}

static bool see_socket(const char *name, uid_t user, void *context)
{
	const struct id_search *search = context;
	struct hold_id id;
	const char *text = hold_id_of_socket(name, &id);

	if (text == NULL || id.pid != search->keeper->pid ||
	    !has_made(search->keeper, user, text, &id))
		return true;
	strcpy(search->text, text);
	return false;
}

static bool find_socket(const struct process *keeper, char text[HOLD_ID_SIZE])
{
	struct id_search search = {keeper, text};

	text[0] = '\0';
	listeners_each(see_socket, &search);
	return text[0] != '\0';
}

bool hold_id_find(const struct process *semlock, char text[HOLD_ID_SIZE])
{
	struct process process = *semlock, parent;

	if (memmem(process.command, process.command_length, "--de", strlen("--de")) == NULL)
		return false;
	while (!find_socket(&process, text)) {
		if (process.parent <= 1 || !process_read(process.parent, &parent) ||
		    parent.command_length != process.command_length ||
		    memcmp(parent.command, process.command, process.command_length) != 0)
			return false;
		process = parent;
	}
	return true;
}
