/* SPDX-License-Identifier: MIT */
/* owners/hold_id.h - the ID of a hold in the background (--detach).  It consists of the PID and the
 * start time of the hold's keeper, four random digits, and four digits of the owner's PID.  By the
 * last four, a waiter rules out most holds whose owners are not its ancestors.  The keeper listens
 * on an abstract socket whose name contains the ID: --release connects to it, and --who finds the
 * ID in the name.
 *
 * Any user may listen on any name.  Believe an ID only if, according to the kernel, the process
 * that it names listens there (hold_peer_is()), or has the same user as the socket's creator
 * (hold_id_find()). */
#ifndef SEMLOCK_OWNERS_HOLD_ID_H
#define SEMLOCK_OWNERS_HOLD_ID_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "report/error.h"

enum { HOLD_ID_SIZE = 64 };

struct process; /* sys/process.h */

struct hold_id {
	pid_t pid;
	unsigned long long started; /* clock ticks after boot; 0: not known */
	unsigned owner;             /* hold_id_digits() of the hold's owner */
};

/* The digits of an ID that depend on the PID of the hold's owner. */
unsigned hold_id_digits(pid_t owner);

/* Write into TEXT an ID for this process as the keeper, and OWNER as the owner.  Returns 0, or -1
 * with ERROR filled: no random bytes. */
int hold_id_make(char text[HOLD_ID_SIZE], pid_t owner, struct error *error);

/* Parse TEXT into ID.  Returns false for anything that hold_id_make() does not write. */
bool hold_id_parse(const char *text, struct hold_id *id);

/* Fill ADDRESS with the socket of the ID in TEXT.  Returns its length in bytes. */
socklen_t hold_id_address(const char *text, struct sockaddr_un *address);

/* The process at the other end of a connection, according to the kernel. */
struct hold_peer {
	int connection; /* nonblocking; closed at exec */
	pid_t pid;
	uid_t user;
};

/* Connect to the socket of the ID in TEXT, without waiting.  Returns 0 with PEER filled, or -1 with
 * errno set: ECONNREFUSED, nobody listens; EAGAIN, too many calls are waiting there. */
int hold_id_connect(const char *text, struct hold_peer *peer);

/* Is PEER the process that ID names? */
bool hold_peer_is(const struct hold_peer *peer, const struct hold_id *id);

/* Parse the name of an abstract socket into ID.  Returns the text of the ID, or NULL: no hold
 * listens there. */
const char *hold_id_of_socket(const char *name, struct hold_id *id);

/* Find the ID of the hold whose keeper is SEMLOCK, or an ancestor of SEMLOCK with the same command
 * line.  Ignores another user's socket with such a name.  Returns false if no hold is found:
 * SEMLOCK holds its lock, or waits for it, in another way. */
bool hold_id_find(const struct process *semlock, char text[HOLD_ID_SIZE]);

#endif
