/* locksmith/etcd/etcdmark.h - what a holder has beside its key: the proof that its time is not over.

     NAME#held/<lease id>         value: that of the key
     NAME#held/#shared/<lease id>
     NAME#held/#slots/<n>         the number is its holder's

   A key that goes away may mean that its holder has let go, or that its lease was ended behind its
   back: revoked by somebody, or by an etcd whose leader was stopped and goes on (before 3.5.13), and
   forgets that it was renewed. Such a holder may not know yet. So it has a mark, and a waiter enters
   when neither key nor mark is in its way:

     holder H                                  waiter W
     keepalive of the key's lease, sent at t
     a new lease is granted
     the mark is put anew under that lease,
       if the key is there still
     HELD, deadline = t + ttl                  key goes: W sees the mark, and watches that
     past its deadline, stopped                the mark's lease ends, not before t + ttl: W enters

   The lease of a mark is never renewed: so it cannot end early, whatever etcd has forgotten of
   renewals. And nobody has to see to it that it ends: after a crash of everything the lock is free
   one ttl after the last renewal. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDMARK_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDMARK_H

#include "locksmith/etcd/etcdlock.h"

/* Gets a lease for the mark, as long as that of the key; to be asked for after that one. */
enum etcd_reply etcdmark_lease(struct etcdlock *k, int64_t until);

/* It is our turn: makes our mark under that, with slots that of number k->place.slot, which is k->slot then.
   k->marked stays false if somebody else has it. GONE: our key is not there any more. */
enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until);

/* Puts the mark under a new lease. GONE: our key, or the mark, is not there any more. */
enum etcd_reply etcdmark_renew(struct etcdlock *k, int64_t until);

/* Takes our key and the mark away, both at once: the lock is free. GONE: the key went before. */
enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until);

/* Takes away what is there still of both: nothing runs under the lock any more. */
enum etcd_reply etcdmark_remove(struct etcdlock *k, int64_t until);

#endif
