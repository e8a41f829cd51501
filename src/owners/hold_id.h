/* SPDX-License-Identifier: MIT */
/* owners/hold_id.h - the ID of a hold in the background (--detach): the PID and the start time of
 * the process that keeps it, and some digits that nobody meets by accident.  That process listens
 * on an abstract socket of this name: for --release, and for --who, which finds the ID by it. */
#ifndef SEMLOCK_OWNERS_HOLD_ID_H
#define SEMLOCK_OWNERS_HOLD_ID_H

#include <limits.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "report/error.h"

enum { HOLD_ID_SIZE = 64 };

struct hold_id {
	pid_t pid;
	unsigned long long started; /* clock ticks after boot; 0: not known */
};

/* Write an ID of this process into TEXT.  Returns 0, or -1 with ERROR filled: no random digits. */
int hold_id_make(char text[HOLD_ID_SIZE], struct error *error);

/* Read TEXT into ID.  Returns false for anything that hold_id_make() does not write. */
bool hold_id_parse(const char *text, struct hold_id *id);

/* Fill ADDRESS with the socket of the ID in TEXT.  Returns its length in bytes. */
socklen_t hold_id_address(const char *text, struct sockaddr_un *address);

/* The ID of the hold that listens on the abstract socket NAME, which is read into ID; NULL: no hold
 * does. */
const char *hold_id_of_socket(const char *name, struct hold_id *id);

/* Find the ID of the hold that process PID keeps, or an ancestor of it whose command line is the
 * same.  Returns false if there is none: PID holds its lock in another way. */
bool hold_id_find(pid_t pid, char text[HOLD_ID_SIZE]);

/* Write the name of the lock NAME into TEXT: a URL as it is, a file with its real directory.
 * Returns 0, or -1 with ERROR filled when there is no such directory. */
int hold_lock_name(const char *name, char text[PATH_MAX + 1], struct error *error);

#endif
