/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcdlock.h - a lock that is a key and a mark, each under a lease, and its calls.

     NAME/<lease id>            our place in the queue; value: mode, pid, host (etcdctl's are empty)
     NAME/#shared/<lease id>    the same of a shared key,
     NAME/#slots/<lease id>     and with slots (etcdqueue.h)
     NAME#held/<lease id>       the mark that a holder has beside its key; value: that of the key
     NAME#held/#shared/<lease id>
     NAME#held/#slots/<n>       the number is its holder's

   The queue is in the order of creation, which etcd makes.

   If a key goes away, its holder has released the lock, or its lease was revoked: by a user, or by an
   etcd before 3.5.13 whose leader was stopped, goes on, and forgets renewals. Such a holder may not
   know yet. So it has a mark, and a waiter enters when neither key nor mark is before it:

     holder H                                  waiter W
     keepalive of the key's lease, sent at t
     a new lease is granted
     the mark is put anew under that lease,
       if the key is there still
     HELD, deadline = t + ttl                  key goes: W sees the mark, and watches that
     past its deadline, stopped                the mark's lease ends, not before t + ttl: W enters

   The lease of a mark is never renewed: so it cannot end early, whatever renewals etcd has forgotten.
   It may have been granted while its owner waited: the deadline is not later than its end.
   If the lock is free, key and mark are made in one transaction. A waiter whose predecessor's key has gone
   makes the mark in a transaction that finds neither keys nor marks before its own key.
   It ends by itself: after a crash of all clients the lock is free one ttl after the last renewal.
   tests/models/lease.py has these steps. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDLOCK_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDLOCK_H

#include "locksmith/etcd/etcdqueue.h"
#include "locksmith/etcd/etcdrpc.h"
#include "locksmith/etcd/etcdwatch.h"
#include "locksmith/common/options.h"

struct etcdlock {
	const struct options *options;
	char name[600];
	struct etcd etcd;
	struct etcdwatch watch;
	int64_t ttl;	    /* nanoseconds, as the server granted it */
	int64_t lease;	    /* its id; 0: none */
	int64_t deadline;   /* clock_boottime(); the lease cannot end before */
	int64_t revision;   /* our key's create_revision: our place in the queue */
	int64_t seen;	    /* revision of the store at the last look */
	int64_t mark_lease; /* our mark's; 0: none */
	int64_t mark_deadline; /* clock_boottime(); that lease cannot end before */
	int64_t mark_made;  /* its create_revision: the fencing token */
	bool held;
	bool marked;	    /* the mark was made, and not removed since */
	int slot;	    /* -1: none */
	struct etcdqueue queue;
	char key[ETCD_KEY], mark[ETCD_KEY]; /* ours, */
	char value[ETCD_KEY];		    /* and the value of both */
	struct etcdqueue_place place;
	struct grpc_call grant; /* of the mark's lease, in the background */
};

/* Gets the lease of our key. */
enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until);

/* Prolongs that lease: OK, or GONE, or SILENT. */
enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until);

/* Puts our key at the end of the queue, and looks at its place; if the lock is free and there is a lease for
   our mark, puts that too, and k->marked is set. With unless_newer >= 0 only if no key of the lock was put
   after that revision; *made is false if one was. */
enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made);

/* Looks at the place in the queue of our key, which was made at revision; INT64_MAX: of a new key. */
enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until);

/* Revokes *lease, which removes its keys. GONE: there was no such lease any more. */
enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t *lease, int64_t until);

/* For --who and --queue-max: all keys of the lock, in order, and all marks, of one revision; valid until the next
   call. */
enum etcd_reply etcdlock_range(struct etcdlock *k, int64_t until, struct pb *kvs, struct pb *marks);

/* Asks for a lease for the mark in the background, while etcdlock_grant asks for that of the key. */
void etcdmark_lease_start(struct etcdlock *k);

/* Takes that lease: k->mark_lease is 0 if none was granted until then. */
void etcdmark_lease_take(struct etcdlock *k, int64_t until);

/* Gets a lease for the mark, as long as that of the key; call it after etcdlock_grant or _keep. */
enum etcd_reply etcdmark_lease(struct etcdlock *k, int64_t until);

/* Makes our mark under that lease; with slots that of number k->place.slot, and sets k->slot. If k->place is
   blocked, only if nothing is before our key any more. k->marked stays false if something is, or if another
   holder has that mark; k->place is new then. GONE: our key is not there any more. */
enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until);

/* Puts the mark under a new lease. GONE: our key, or the mark, is not there any more. */
enum etcd_reply etcdmark_renew(struct etcdlock *k, int64_t until);

/* Releases the lock: removes our key and the mark in one transaction. GONE: the key went before. */
enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until);

/* Removes what is left of both; only when no process runs under the lock any more. */
void etcdmark_remove(struct etcdlock *k, int64_t until);

/* etcd_acquire.c: EXIT_RELEASED with k->held set, or the status to end with; call etcd_leave then. */
int etcd_acquire(struct etcdlock *k, struct failure *failure);

/* Removes our key from the queue, and the mark, which is there if the reply to enter was lost. */
void etcd_leave(struct etcdlock *k, int64_t until);

/* etcd_hold.c: keeps the lock until protocol_released() or its loss. Returns the exit status. */
int etcd_hold(struct etcdlock *k, struct failure *failure);

#endif
