/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_key.h - a lock that is a key under a lease, and its calls.
 *
 *   NAME/<lease id>          a client's place in the queue.  Its value is mode, pid and host;
 *                            etcdctl lock leaves it empty.
 *   NAME/#shared/<lease id>  the place of a client that wants a shared lock
 *   NAME/#slots/<lease id>   the place of a client that wants a slot (etcd_queue.h)
 *   NAME/#slots#/<n>         slot number <n> is held; this key is under its holder's lease
 *
 * The queue is in the order of the keys' create_revision.  etcd sets it when a key is made, and
 * keeps it when the key is put again.
 *
 * A waiter renews the lease of its key.  A holder must not rely on renewals: if the leader of an
 * etcd before 3.5.13 is stopped and continued, it forgets renewals, and may end a renewed lease
 * early.  A waiter then loses only its place, but a holder would not know in time that it has lost
 * the lock.  So a holder's key is under a lease that was never renewed, because such a lease cannot
 * end early.  To hold the lock for longer, the holder puts its key under a new lease:
 *
 *   holder H                                  waiter W
 *   at the moment t, asks for a new lease
 *   puts its key under that lease, if the
 *     key still exists
 *   HELD, deadline = t + ttl                  H's key expires, not before t + ttl: W enters
 *
 * To enter, a client makes such a put as well, on condition that it need not wait for any other
 * key.  It may use its waiter's lease if that was never renewed.  The revision of this put is the
 * fencing token.  The key's create_revision would not do, because a key that was made early may
 * enter late.  If all clients crash, etcd removes their keys one ttl after the last renewal.
 *
 * If a server is so busy that many answers take a good part of a lease, waiters lose their places,
 * come back, and make even more work.  So, on a slow server, a waiter's lease is four times as
 * long; without --ttl, so is a holder's.  If the answer to a put is lost, the holder does not know
 * whether its key is under the old lease or the new one.  So a new lease never ends before the old
 * one, and when the server is quick again, the leases get shorter only gradually.
 *
 * A cluster member that was stopped may carry out an old put after a newer one, which would take
 * the key back to an older lease.  So each put has a condition: the key's mod_revision is the one
 * that we know.  Of all puts that are sent with one mod_revision, etcd carries out only one.  If
 * the condition fails, the transaction reads the key instead.  If the key shows that an earlier put
 * of ours was carried out, whose answer was lost, there are two cases.  If it was this very put, we
 * are done.  If it was another one, we send the put again with the mod_revision that we found.  A
 * renewal whose answer was lost is sent again with the same lease.  So the key can come under one
 * lease besides its present one, and no more; etcd_key_prolong() keeps both alive.
 * tests/models/lease.py has these steps. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_KEY_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_KEY_H

#include "locksmith/common/options.h"
#include "locksmith/etcd/etcd_queue.h"
#include "locksmith/etcd/etcd_rpc.h"

struct etcd_lease {
	int64_t id;  /* 0: none */
	int64_t ttl; /* nanoseconds, as the server granted it */
	int64_t end; /* on clock_boottime(); a lease that was never renewed does not end before */
	/* only for a place in the queue, do not enter under it: it is a waiter's long lease, or a
	 * renewal was sent for it, and it may end early */
	bool place_only;
};

struct etcd_lock {
	const struct options *options;
	char name[600];
	struct etcd_rpc rpc;
	struct etcd_watch watch;
	int64_t ttl;             /* the length of a holder's lease, if the server is not slow */
	struct etcd_lease lease; /* our key is under this one */
	/* the lease to put our key under next; if the answer to that put was lost, the key may be
	 * under it already */
	struct etcd_lease next;
	bool unsure; /* the answer to a put was lost: our key may be under NEXT, now or later */
	int64_t revision; /* our key's create_revision: our place in the queue */
	int64_t put;      /* our key's mod_revision, as far as we know */
	/* the revision at which our key became the holder's; 0: we do not hold the lock */
	int64_t token;
	int64_t seen; /* the revision of the store at our last look or put */
	int slot;     /* the slot that we take or hold; -1: none */
	struct etcd_queue queue;
	/* our key, and the key of our slot's number; number "": no slot */
	char key[ETCD_KEY], number[ETCD_KEY];
	char value[ETCD_KEY]; /* the value of our key once we hold the lock */
	struct etcd_place place;
};

/* Get a lease for a new key of ours; a long lease if the server is slow. */
enum etcd_reply etcd_key_grant(struct etcd_lock *lock, int64_t until);

/* Renew the lease of our key.  ETCD_GONE: the lease has ended. */
enum etcd_reply etcd_key_keep(struct etcd_lock *lock, int64_t until);

/* Put our key at the end of the queue, and fill lock->place.  But if the lock is free, we want no
 * slot, and our lease is not place_only, put the key as the holder's, and set lock->token.  If
 * UNLESS_NEWER >= 0, put nothing if any key of the lock was made after that revision.  With
 * ETCD_OK, *MADE says whether our key exists now. */
enum etcd_reply etcd_key_queue(struct etcd_lock *lock, int64_t unless_newer, int64_t until,
    bool *made);

/* Look at our place in the queue, and fill lock->place.  Our key was made at REVISION; INT64_MAX:
 * we have no key yet, and look at the place that a new key would get. */
enum etcd_reply etcd_key_look(struct etcd_lock *lock, int64_t revision, int64_t until);

/* Put our key as the holder's, and set lock->token; with slots, take the number place.slot.  If
 * lock->place is blocked, put the key only if it need not wait for another key any more.  If it
 * must wait, or if another holder has that number, lock->token stays 0, and lock->place is filled
 * anew.  ETCD_GONE: our key no longer exists. */
enum etcd_reply etcd_key_enter(struct etcd_lock *lock, int64_t until);

/* Put the holder's key under a new lease.  If the answer to the last renewal was lost, use that
 * renewal's lease again.  ETCD_GONE: the key no longer exists. */
enum etcd_reply etcd_key_renew(struct etcd_lock *lock, int64_t until);

/* Keep the lease of the holder's key alive, because the server refuses to renew the lock.  If the
 * answer to the last renewal was lost, keep that renewal's lease alive, too.  The lock lasts, but a
 * lease that is kept alive can end early (see above).  ETCD_GONE: the key or its lease no longer
 * exists. */
enum etcd_reply etcd_key_prolong(struct etcd_lock *lock, int64_t until);

/* Remove the holder's key, and set lock->token to 0.  ETCD_GONE: the key did not exist, perhaps
 * because an earlier request removed it. */
enum etcd_reply etcd_key_release(struct etcd_lock *lock, int64_t until);

/* Revoke our leases, which removes the keys that are under them. */
void etcd_key_revoke(struct etcd_lock *lock, int64_t until);

/* For --who and --queue-max: set *KEYS to all keys of the lock, as of one revision, the oldest
 * first.  They are valid until the next call. */
enum etcd_reply etcd_key_all(struct etcd_lock *lock, int64_t until, struct protobuf *keys);

#endif
