/* SPDX-License-Identifier: MIT */
/* hold/keeper.h - the process that keeps a hold in the background (detach.h): it watches the hold's
 * owner, listens for --release and --resume, and ends the holder.  It sleeps in one poll(2); where
 * the kernel has no pidfds, it also wakes up once a second.
 *
 * If a hold ends without --release, its keeper remembers how for ten minutes, so that a later
 * --release can report that.  Of the keepers of one owner, only the last eight remember.
 *
 * The messages.  Other calls of semlock send packets through a socket.  The holder and the
 * placeholder have pipes to the keeper, and write lines:
 *
 *	front               keeper               holder         placeholder
 *	    |  <--- ID id=    |                     |
 *	    |  <--- WAITS i p |  <--- WAITS i p     |   lock number i is busy, process p waits
 *	    |  <--- !text     |  <~~~ (errors)      |   the holder's standard error
 *	    |  <--- busy ...  |  <--- busy ...      |   events of --status-fd: in small letters
 *	    |  <--- OK id= .. |  <----------------- | --- OK id= ..     held
 *	  OK, or WAITING, is printed
 *	    |  ACK --->       |                         if the front ends before this, the hold ends
 *	    |  <--- 0         |                         from now on the front's end changes nothing
 *	    |                 |  why ------------------> one byte, enum hold_end; or end of file
 *	    |  <--- N text    |  (waitpid)
 *
 *	--release   RELEASE lock --->           the answer comes when the holder has ended;
 *	            <--- ENDING                 until then, this at once and every ten seconds
 *	--resume    RESUME lock --->            at once ID, or the last WAITS or OK; then as above
 *	a waiter    OWNER method lock --->      0 and the owner's PID, if the whole lock is held
 *	a keeper    FORGET pid --->             another hold of the owner PID has ended
 *
 * The last message of a conversation is the answer, "N text": an exit status and the reason, or 0
 * and perhaps a note; to --resume it may be OK.  LOCK is a name from hold_lock_name().  Before it
 * exits, a keeper answers all calls that have connected, even if it has not read their question. */
#ifndef SEMLOCK_HOLD_KEEPER_H
#define SEMLOCK_HOLD_KEEPER_H

#include <limits.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#include "hold/hold_names.h"
#include "lock/lock.h"
#include "owners/hold_id.h"
#include "report/error.h"
#include "sys/deadline.h"
#include "sys/waiting.h"

/* Bytes of the longest packet, and of the holder's longest line: OK with each slot of --take.  (A
 * question with the name of a lock is shorter.) */
enum { KEEPER_MESSAGE = 512 + SLOTS_MOST * sizeof "4095" };
_Static_assert(KEEPER_MESSAGE > PATH_MAX + 64, "a lock's name is longer");

#define KEEPER_ID "ID"
#define KEEPER_WAITS "WAITS"
#define KEEPER_TEXT '!'
#define KEEPER_OK "OK"
#define KEEPER_ACK "ACK"
#define KEEPER_RELEASE "RELEASE"
#define KEEPER_RESUME "RESUME"
#define KEEPER_OWNER "OWNER"
#define KEEPER_ENDING "ENDING"
#define KEEPER_FORGET "FORGET"

/* Why a hold in the background has ended: what the keeper writes to the placeholder, and the
 * placeholder's exit status. */
enum hold_end {
	HOLD_RELEASED,
	HOLD_ORPHANED = 3, /* its owner has ended */
	HOLD_ABANDONED     /* the caller did not get OK; or the keeper has failed, or was killed */
};

enum keeper_state {
	KEEPER_TAKES, /* the holder waits for the lock */
	KEEPER_HOLDS, /* the lock is held */
	KEEPER_ENDS,  /* the holder was told to end */
	/* the holder has ended without --release; a late --release can still ask how */
	KEEPER_REMEMBERS
};

/* The most calls at a time, and the most keepers of one owner that remember. */
enum { KEEPER_CLIENTS = 8, KEEPER_MEMORIES = 8 };

/* The most descriptors that a keeper, or the holder that it starts, has open. */
enum { KEEPER_DESCRIPTORS = 32 };

/* What the holder has written on its standard output. */
struct keeper_news {
	char *line;          /* the last line about the wait, or OK; NULL: none yet */
	char *next;          /* the beginning of the next line, of any kind */
	size_t length, size; /* of NEXT: bytes read, and room */
};

struct keeper {
	enum keeper_state state;
	bool known; /* the caller knows the ID: now the front's end does not end the hold */
	char id[HOLD_ID_SIZE];
	struct hold_names names;
	const char *method; /* the name of the lock's method; "": only a part of the lock is held */
	struct watched owner;
	/* the holder's PID; -1: not started yet; 0: this process is the holder */
	pid_t holder;
	/* the other ends of the holder's standard input, output and error */
	int to_holder, from_holder, errors;
	/* a socket to the call that waits for the lock (the first call, or --resume); -1: none */
	int front;
	pid_t first; /* the process of the first call */
	/* KEEPER_HOLDS, and not KNOWN: when to look whether the first call is stopped; KEEPER_ENDS:
	 * when to send ENDING to the calls that wait; KEEPER_REMEMBERS: when to exit; else never */
	struct deadline due;
	int socket;
	struct deadline deaf; /* until then, accept no call; never: accept calls now */
	int clients[KEEPER_CLIENTS];
	int releaser;     /* the client whose --release ends the holder; -1: none */
	int verdict;      /* how the hold ended: an exit status ... */
	char reason[160]; /* ... and why, or a note with 0 */
	unsigned later;   /* holds of the same owner that have ended since */
	struct keeper_news news;
};

/* Send TEXT to the socket TO (-1: to nobody), without waiting for room.  Returns 0, or -1 with
 * errno set. */
int keeper_say(int to, const char *text);

/* Receive a packet from the socket FROM, with FLAGS of recv(2), into MESSAGE, ended by a zero.
 * Returns its length; 0 at the end of the connection; or -1 with errno set: EMSGSIZE, it is longer
 * than any message; EAGAIN with MSG_DONTWAIT.  MESSAGE is "" then. */
ssize_t keeper_hear(int from, char message[KEEPER_MESSAGE + 1], int flags);

/* Answer CLIENT with an exit status and a text, and close its connection. */
void keeper_reply(int *client, int status, const char *text);

/* In the keeper's process, without a holder: tell the front of ERROR, and exit. */
noreturn void keeper_fail(struct keeper *keeper, const struct error *error);

/* Keep the hold until it ends; then exit. */
noreturn void keeper_serve(struct keeper *keeper);

/* The word for --log: why a hold in the background has ended, from its placeholder's exit STATUS;
 * NULL: STATUS does not say that. */
const char *hold_end_text(int status);

#endif
