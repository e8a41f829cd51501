/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_key.h - a lock that is a key under a lease, and its calls.
 *
 *   NAME/<lease id>            our place in the queue; value: mode, pid, host (etcdctl's are empty)
 *   NAME/#shared/<lease id>    the same of a shared lock,
 *   NAME/#slots/<lease id>     and with slots (etcd_queue.h)
 *   NAME/#slots#/<n>           the number of a slot that is held, under its holder's lease
 *
 * The queue is in the order of the keys' create_revision, which etcd sets, and which a key keeps
 * when it is put again.
 *
 * A waiter renews the lease of its key.  If the leader of an etcd before 3.5.13 is stopped and
 * continued, it forgets renewals and may end such a lease early: the waiter loses its place.  A
 * holder would not know in time that its lease has ended.  So its key is under a lease that was
 * never renewed, which cannot end early.  To hold the lock for longer, the holder puts the key
 * under a new lease:
 *
 *   holder H                                  waiter W
 *   a new lease is granted, asked for at t
 *   the key is put under that lease,
 *     if it is there still
 *   HELD, deadline = t + ttl                  the key goes, not before t + ttl: W enters
 *
 * To enter, a client makes such a put as well, if nothing is before its key; the waiter's lease
 * will do if it was never renewed.  The revision of that put is the fencing token, because a key
 * that was made early may enter late.  If all clients crash, their keys go one ttl after the last
 * renewal.
 *
 * On a server so busy that many answers take a good part of a lease, waiters lose their places,
 * come back, and make even more work.  So, on a slow server, a waiter gets a lease of four times
 * the length for its place.  So does a holder, unless the user gave --ttl.  A holder's new lease
 * never ends before the one that its key is under, because the answer that says which of the two
 * the key is under may be lost: so when the server is quick again, the leases get shorter only
 * gradually.
 *
 * A member of the cluster that was stopped may carry out a put late, after a newer one, and so
 * would take the key back to an older lease.  So each put has the condition that the key was last
 * put at the revision that we know: of all puts that are sent with one revision, a single one is
 * carried out.  A put that is not carried out reads the key instead.  If the key shows an earlier
 * put of ours, whose answer was lost, we send the put again with the revision found, unless the
 * earlier put was this very one.  A renewal whose answer was lost is sent again with the same
 * lease, so the key can come under one lease besides its present one, and no more; when leases are
 * kept alive (etcd_key_prolong()), both are.  tests/models/lease.py has these steps. */
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
	/* the lease to put our key under; if the answer was lost, it may be under it already */
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
 * that revision; if one was, *made becomes false. */
enum etcd_reply etcd_key_queue(struct etcd_lock *lock, int64_t unless_newer, int64_t until,
    bool *made);

/* Look at the place in the queue of our key, which was made at REVISION; INT64_MAX: of a new
 * key. */
enum etcd_reply etcd_key_look(struct etcd_lock *lock, int64_t revision, int64_t until);

/* Put our key as the holder's; with slots, take number place.slot.  If lock->place is blocked, put
 * it only if nothing is before our key any more.  If something is, or if another holder has that
 * number, lock->token stays 0, and lock->place is filled anew.  GONE: our key no longer exists. */
enum etcd_reply etcd_key_enter(struct etcd_lock *lock, int64_t until);

/* Put the holder's key under a new lease, or under that of the last renewal if its answer was lost.
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
