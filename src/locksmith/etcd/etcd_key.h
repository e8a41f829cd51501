/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_key.h - a lock that is a key under a lease, and its calls.
 *
 *   NAME/<lease id>            our place in the queue; value: mode, pid, host (etcdctl's are empty)
 *   NAME/#shared/<lease id>    the same of a shared lock,
 *   NAME/#slots/<lease id>     and with slots (etcd_queue.h)
 *   NAME/#slots#/<n>           the number of a slot that is held, under the lease of its holder's
 * key
 *
 * The queue is in the order of creation, which etcd makes, and which a key keeps when it is put
 * again.
 *
 * A waiter renews the lease of its key.  If the leader of an etcd before 3.5.13 is stopped and
 * continued, it forgets renewals and may end such a lease early: the waiter loses its place.  A
 * holder would not know in time that its lease has ended.  So its key is under a lease that was
 * never renewed, which cannot end early.  To hold the lock for longer, the holder puts the key
 * under another one:
 *
 *   holder H                                  waiter W
 *   a new lease is granted, asked for at t
 *   the key is put under that lease,
 *     if it is there still
 *   HELD, deadline = t + ttl                  the key goes, not before t + ttl: W enters
 *
 * To enter is such a put as well, of a key with nothing before it; the lease of the waiter will do
 * if it was never renewed.  The revision of the put is the fencing token: a key that was made early
 * may be held late.  A crash of all clients leaves keys that go one ttl after the last renewal.
 *
 * A server that is so busy that many of its answers take a good part of a lease loses the places of
 * waiters, which come back, and are the more work for it.  There a waiter has a lease of four times
 * the time for its place.  So has a holder, unless the user has said how long its lease is to be;
 * but none that ends before the one that its key is under, as an answer may be lost that says which
 * of the two it is: when the server is quick again, the leases get shorter by and by.
 *
 * A member of the cluster that stood still may carry a put out late, behind a newer one, and would
 * take the key back to an older lease.  So each put has the condition that the key was last put at
 * the revision that we know: of those that are sent with one revision, a single one is carried out.
 * A put that is not carried out reads the key.  If that shows an earlier one of ours, whose answer
 * was lost, the put is sent again with the revision found, unless it is this very one.  A renewal
 * whose answer was lost is sent again under its own lease, so the key can come under one lease
 * besides its present one, and no more; and where leases are kept alive, both are.
 * tests/models/lease.py has these steps. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_KEY_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_KEY_H

#include "locksmith/common/options.h"
#include "locksmith/etcd/etcd_queue.h"
#include "locksmith/etcd/etcd_rpc.h"

struct etcd_lease {
	int64_t id;  /* 0: none */
	int64_t ttl; /* nanoseconds, as the server granted it */
	int64_t end; /* on clock_boottime(); it does not end before, unless it was renewed */
	/* only good for a place in the queue, not for holding: it was renewed, or perhaps so, and
	 * may end early; or it is a long one */
	bool place_only;
};

struct etcd_lock {
	const struct options *options;
	char name[600];
	struct etcd_rpc rpc;
	struct etcd_watch watch;
	int64_t ttl;             /* of a lease that holds the lock, if the server is not slow */
	struct etcd_lease lease; /* of our key */
	/* the lease to put our key under; if the answer was lost, it may be there already */
	struct etcd_lease next;
	bool unsure;      /* an answer was lost: our key may be under NEXT, now or later */
	int64_t revision; /* our key's create_revision: our place in the queue */
	int64_t put;      /* its mod_revision, as far as we know */
	/* the revision at which our key became the holder's; 0: we do not hold the lock */
	int64_t token;
	int64_t seen; /* revision of the store at the last look */
	int slot;     /* -1: none */
	struct etcd_queue queue;
	char key[ETCD_KEY], number[ETCD_KEY]; /* ours; number "": no slot */
	char value[ETCD_KEY];                 /* of a holder's key */
	struct etcd_place place;
};

/* Get a lease for a new key of ours, a long one if the server is slow. */
enum etcd_reply etcd_key_grant(struct etcd_lock *lock, int64_t until);

/* Renew the lease of a waiter: OK, or GONE, or SILENT. */
enum etcd_reply etcd_key_keep(struct etcd_lock *lock, int64_t until);

/* Put our key at the end of the queue, and look at its place; if the lock is free, put it as the
 * holder's, and set lock->token.  With unless_newer >= 0, only if no key of the lock was made after
 * that revision; *made is false if one was. */
enum etcd_reply etcd_key_queue(struct etcd_lock *lock, int64_t unless_newer, int64_t until,
    bool *made);

/* Look at the place in the queue of our key, which was made at revision; INT64_MAX: of a new
 * key. */
enum etcd_reply etcd_key_look(struct etcd_lock *lock, int64_t revision, int64_t until);

/* Put our key as the holder's; with slots, take number place.slot.  If lock->place is blocked, only
 * if nothing is before our key any more.  lock->token stays 0 if something is, or if another holder
 * has that number; then lock->place is new.  GONE: our key no longer exists. */
enum etcd_reply etcd_key_enter(struct etcd_lock *lock, int64_t until);

/* Put the holder's key under another lease: that of the last renewal, if its answer was lost.
 * GONE: the key no longer exists. */
enum etcd_reply etcd_key_renew(struct etcd_lock *lock, int64_t until);

/* Keep the lease of the holder's key alive, and that of a renewal whose answer was lost, when the
 * server refuses to renew: the lock lasts, but such a lease can end early (above).  Returns
 * ETCD_GONE if the key no longer exists. */
enum etcd_reply etcd_key_prolong(struct etcd_lock *lock, int64_t until);

/* Remove the holder's key; sets lock->token to 0.  GONE: the key did not exist, perhaps because an
 * earlier request removed it. */
enum etcd_reply etcd_key_release(struct etcd_lock *lock, int64_t until);

/* Revoke our leases, which removes the keys that are under them. */
void etcd_key_revoke(struct etcd_lock *lock, int64_t until);

/* For --who and --queue-max: all keys of the lock, in order, of one revision; valid until the next
 * call. */
enum etcd_reply etcd_key_all(struct etcd_lock *lock, int64_t until, struct protobuf *keys);

#endif
