/* locksmith/etcd/etcdmark.h - the mark that a holder has beside its key: its lease is not over.

     NAME#held/<lease id>         value: that of the key
     NAME#held/#shared/<lease id>
     NAME#held/#slots/<n>         the number is its holder's

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
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDMARK_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDMARK_H

#include "locksmith/etcd/etcdlock.h"

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
enum etcd_reply etcdmark_remove(struct etcdlock *k, int64_t until);

#endif
