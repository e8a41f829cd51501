/* SPDX-License-Identifier: MIT */
/* run/keeper.h - the process that keeps a hold in the background (detach.h): it starts the holder,
 * and ends it when that is asked for (--release), or when the process ends for which it holds.
 *
 * It sleeps in one poll(2), and wakes up for nothing else; where the kernel has no pidfds, once a
 * second. */
#ifndef SEMLOCK_RUN_KEEPER_H
#define SEMLOCK_RUN_KEEPER_H

#include <limits.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#include "cli/request.h"
#include "owners/hold_id.h"
#include "report/error.h"
#include "run/hold_owner.h"

/* A message between two of these processes is a packet of at most so many bytes. */
enum { KEEPER_MESSAGE = PATH_MAX + 64 };

/* The holder's line on its standard output, and to the front: WAITS LOCK PID.  The placeholder's is
 * OK, as --hold prints it; the front gets it with the ID. */
#define KEEPER_WAITS "WAITS"
/* To the front: the holder has ended; its status, of waitpid(2), follows. */
#define KEEPER_ENDED "ENDED"
/* From the front: the time is up, and the place is to be kept.  The answer is OK, ENDED or this:
 * WAITING id=ID. */
#define KEEPER_KEEP "KEEP"
#define KEEPER_WAITING "WAITING"
/* From the front: OK, or WAITING, has been printed. */
#define KEEPER_ACK "ACK"
/* From --release: the lock's name, of hold_lock_name(), follows.  The answer is an exit status
 * and a text: why, or with 0 what there was to say, if anything. */
#define KEEPER_RELEASE "RELEASE"
/* From a waiter: the name of its method, and the lock's, follow.  If this is the lock, and all of
 * it is held, the answer is 0 and the PID of the owner. */
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

struct keeper {
	enum keeper_state state;
	bool known; /* the caller has the ID: the end of a front ends nothing */
	char id[HOLD_ID_SIZE];
	char lock[PATH_MAX + 1];
	const char *method; /* its name; "": but a part of the lock is asked for */
	struct hold_owner owner;
	pid_t holder;      /* -1: not started yet; 0: in the holder */
	int input, output; /* the holder's standard input and output */
	/* the call that waits for the lock: the first one, or --resume; -1: none */
	int front;
	int socket;
	int errors, events; /* what the holder says; read by the front while that is there */
	int clients[KEEPER_CLIENTS];
	int releaser;     /* the client for which the holder ends; -1: none */
	int verdict;      /* how it ended: an exit status ... */
	char reason[160]; /* ... and why, or what there is to say with 0 */
	char *news;       /* the last line about the wait, or OK, for a --resume; NULL: none yet */
};

/* In the front: fill KEEPER for REQUEST.  Returns 0, or -1 with ERROR filled when there is no
 * process REQUEST->owner. */
int keeper_begin(struct keeper *keeper, const struct request *request, struct error *error);

/* In the keeper's process: make its ID, and listen.  Returns 0, or -1 with ERROR filled. */
int keeper_listen(struct keeper *keeper, struct error *error);

/* In the keeper's process, without a holder: tell the front of ERROR, and exit. */
noreturn void keeper_fail(const struct keeper *keeper, const struct error *error);

/* Keep the hold until it ends; then exit. */
noreturn void keeper_serve(struct keeper *keeper);

/* In one word, for --log: why the hold in the background has ended whose placeholder exited with
 * STATUS; NULL: it says nothing of that. */
const char *hold_end_text(int status);

#endif
