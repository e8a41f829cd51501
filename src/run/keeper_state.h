/* SPDX-License-Identifier: MIT */
/* run/keeper_state.h - what the process that keeps a hold in the background (keeper.h) knows of it;
 * what it and the other processes say to each other; and how the hold ends. */
#ifndef SEMLOCK_RUN_KEEPER_STATE_H
#define SEMLOCK_RUN_KEEPER_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "owners/hold_id.h"
#include "run/hold_names.h"
#include "run/hold_owner.h"
#include "sys/deadline.h"

/* A message between two of these processes is a packet of at most so many bytes. */
enum { KEEPER_MESSAGE = PATH_MAX + 64 };

/* The holder's line on its standard output, and to the front: WAITS LOCK PID.  The placeholder's is
 * OK, as --hold prints it; the front gets it with the ID. */
#define KEEPER_WAITS "WAITS"
/* To the front: the holder has ended; its status, of waitpid(2), follows, and why, unless the
 * holder has said that itself. */
#define KEEPER_ENDED "ENDED"
/* From the front: the time is up, and the place is to be kept.  The answer is OK, ENDED or this:
 * WAITING id=ID. */
#define KEEPER_KEEP "KEEP"
#define KEEPER_WAITING "WAITING"
/* From the front: OK, or WAITING, has been printed.  The answer is KNOWN, and from then on the end
 * of the front ends nothing; or ENDED, if the hold ends already. */
#define KEEPER_ACK "ACK"
#define KEEPER_KNOWN "KNOWN"
/* From --release: the name of one of the locks, of hold_lock_name(), follows.  The answer is an
 * exit status and a text: why, or with 0 what there was to say, if anything. */
#define KEEPER_RELEASE "RELEASE"
/* From a waiter: the name of its method, and the lock's, follow.  If this is one of the locks, and
 * all of it is held, the answer is 0 and the PID of the owner. */
#define KEEPER_OWNER "OWNER"

/* Why a hold in the background has ended: what the keeper writes to the placeholder, and the
 * placeholder's exit status. */
enum hold_end {
	HOLD_RELEASED,
	HOLD_ORPHANED = 3, /* its process has ended */
	HOLD_ABANDONED     /* its call was killed before OK was printed; or its keeper was */
};
/* From --resume: likewise.  It is answered as the front is, or by an exit status and a text. */
#define KEEPER_RESUME "RESUME"

enum keeper_state {
	KEEPER_TAKES,    /* the holder waits for the lock */
	KEEPER_OFFERS,   /* the lock is held, and the front has not said yet that OK is printed */
	KEEPER_HOLDS,    /* it is held, and the caller knows the ID */
	KEEPER_ENDS,     /* the holder was told to end */
	KEEPER_REMEMBERS /* it has ended before --release: how, is told until the owner has ended */
};

enum { KEEPER_CLIENTS = 8 };

/* The most that a keeper, or the holder that it starts, has open. */
enum { KEEPER_DESCRIPTORS = 32 };

/* What there is to tell the call that waits, and a --resume. */
struct keeper_news {
	char *line; /* the last one about the wait, or OK; NULL: none yet */
	bool owed;  /* the call, which does not read, has not been told of it */
	/* of the next line of the holder's, which is shorter than this: its beginning */
	char begun[KEEPER_MESSAGE];
	size_t length; /* of that */
};

struct keeper {
	enum keeper_state state;
	bool known; /* the caller has the ID: the end of a front ends nothing */
	char id[HOLD_ID_SIZE];
	struct hold_names names;
	const char *method; /* its name; "": but a part of the lock is asked for */
	struct hold_owner owner;
	pid_t holder;      /* -1: not started yet; 0: in the holder */
	int input, output; /* the holder's standard input and output */
	/* the call that waits for the lock: the first one, or --resume; -1: none */
	int front;
	pid_t first;              /* the process of the first call */
	struct deadline patience; /* KEEPER_OFFERS: then the first call may be stopped */
	int socket;
	int errors, events; /* what the holder says; read by the front while that is there */
	int clients[KEEPER_CLIENTS];
	int releaser;     /* the client for which the holder ends; -1: none */
	int verdict;      /* how it ended: an exit status ... */
	char reason[160]; /* ... and why, or what there is to say with 0 */
	struct keeper_news news;
};

/* Close *FD, which is -1 then; -1: it is closed already. */
void keeper_close(int *fd);

/* Send TEXT to the socket TO (-1: to nobody), if there is room for it. */
void keeper_say(int to, const char *text);

/* Answer CLIENT with an exit status and a text, and close its connection. */
void keeper_reply(int *client, int status, const char *text);

/* Tell the holder to end, unless that was done before.  WHY is for the placeholder, and REASON for
 * the calls that wait for the end. */
void keeper_end_holder(struct keeper *keeper, enum hold_end why, const char *reason);

/* The holder has said something on standard error: read it, so that no helper waits for a
 * reader. */
void keeper_read_errors(struct keeper *keeper);

/* The holder has ended, and so the lock is released: tell all that wait for it.  Returns true
 * if there is an owner for whom the keeper is to remember that end, else it has nothing more to do.
 */
bool keeper_holder_ended(struct keeper *keeper);

/* In one word, for --log: why the hold in the background has ended whose placeholder exited with
 * STATUS; NULL: it says nothing of that. */
const char *hold_end_text(int status);

#endif
