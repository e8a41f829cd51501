/* SPDX-License-Identifier: MIT */
/* hold/keeper.h - the process that keeps a hold in the background (detach.h): it watches the hold's
 * owner, listens for --release and --resume, and ends the holder.  It sleeps in one poll(2), and
 * wakes up for nothing else; where the kernel has no pidfds, once a second.
 *
 * It remembers for ten minutes how a hold has ended that was not released, so that --release can
 * say so; of the holds of one owner, the last eight do.
 *
 * What is said.  Calls have a socket of packets; the holder and the placeholder pipes, of lines:
 *
 *	front               keeper               holder         placeholder
 *	    |  <--- ID id=    |                     |
 *	    |  <--- WAITS i p |  <--- WAITS i p     |   lock number i is busy, process p waits
 *	    |  <--- !text     |  <~~~ (errors)      |   its standard error
 *	    |  <--- busy ...  |  <--- busy ...      |   events of --status-fd: a small letter
 *	    |  <--- OK id= .. |  <----------------- | --- OK id= ..     held
 *	  OK, or WAITING, is printed
 *	    |  ACK --->       |                         its end before this ends the hold
 *	    |  <--- 0         |                         from now on its end ends nothing
 *	    |                 |  why ------------------> one byte, enum hold_end; or an end of file
 *	    |  <--- N text    |  (waitpid)
 *
 *	--release   RELEASE lock --->           the answer comes when the holder has ended;
 *	            <--- ENDING                 until then, this at once and every ten seconds
 *	--resume    RESUME lock --->            at once ID, or the last WAITS or OK; then as above
 *	a waiter    OWNER method lock --->      0 and the PID of the owner, if all of it is held
 *	a keeper    FORGET pid --->             another hold of the owner PID has ended
 *
 * "N text" is the answer, and the last message of each conversation: an exit status, and why; or
 * with 0 what there is to say.  LOCK is of hold_lock_name().  A keeper that ends answers the calls
 * that have connected, also those that it has not heard. */
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

/* The longest line of the holder's, and the longest packet, in bytes: OK with each slot of --take.
 * (A question with the name of a lock is shorter.) */
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
	HOLD_ORPHANED = 3, /* its process has ended */
	HOLD_ABANDONED     /* its call was killed before OK was printed; or its keeper was */
};

enum keeper_state {
	KEEPER_TAKES,    /* the holder waits for the lock */
	KEEPER_HOLDS,    /* it is held */
	KEEPER_ENDS,     /* the holder was told to end */
	KEEPER_REMEMBERS /* it has ended before --release, which is told how */
};

/* Calls at a time, and how many keepers of one owner remember. */
enum { KEEPER_CLIENTS = 8, KEEPER_MEMORIES = 8 };

/* The most that a keeper, or the holder that it starts, has open. */
enum { KEEPER_DESCRIPTORS = 32 };

/* What the holder says. */
struct keeper_news {
	char *line;          /* the last one about the wait, or OK; NULL: none yet */
	char *next;          /* the beginning of the next line, of any kind */
	size_t length, size; /* of NEXT: bytes read, and room */
};

struct keeper {
	enum keeper_state state;
	bool known; /* the caller has the ID: the front's end ends nothing */
	char id[HOLD_ID_SIZE];
	struct hold_names names;
	const char *method; /* its name; "": but a part of the lock is asked for */
	struct watched owner;
	pid_t holder;                       /* -1: not started yet; 0: in the holder */
	int to_holder, from_holder, errors; /* its standard input, output and error */
	/* the call that waits for the lock: the first one, or --resume; -1: none */
	int front;
	pid_t first; /* the process of the first call */
	/* held, and not known: look whether the first call is stopped; the holder ends: tell those
	 * who wait for it that it does; remembers: forget; else never */
	struct deadline due;
	int socket;
	struct deadline deaf; /* until then, no call can be accepted; never: they can */
	int clients[KEEPER_CLIENTS];
	int releaser;     /* the client for which the holder ends; -1: none */
	int verdict;      /* how it ended: an exit status ... */
	char reason[160]; /* ... and why, or what there is to say with 0 */
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

/* In one word, for --log: why the hold in the background has ended whose placeholder exited with
 * STATUS; NULL: it says nothing of that. */
const char *hold_end_text(int status);

#endif
