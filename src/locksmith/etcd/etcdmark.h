/* etcdmark - what a holder leaves beside its key, and takes away when it is done: the proof that
   it is done.

     NAME#held/<lease id>     value: lease id, ttl in seconds, and what the key says
     NAME#held/slot/<n>       with --slots: the number is its holder's

   A key that goes away may mean that its holder has let go, or that its lease was ended behind its
   back: revoked by somebody, or by an etcd whose leader was stopped and goes on (before 3.5.13).
   Such a holder may not know yet. The mark is under no lease, so it stays, and whoever finds it
   without its key (an orphan) waits for the holder's time to run out:

     holder H                           waiter W
     HELD, deadline = sent + ttl
     key is there (asked after that)
                  key goes, mark stays  "orphan": the mark is put again, under a new lease of H's
                                        ttl that nobody renews
     past its deadline, stopped         ... which ends: the mark goes, W enters

   A lease that is never renewed cannot end early, whatever etcd has forgotten of renewals. H does
   not believe a renewal before it has seen its key after it, so its deadline is less than a ttl
   after the key went. */
#ifndef LOCKSMITH_ETCDMARK_H
#define LOCKSMITH_ETCDMARK_H

#include "locksmith/etcd/etcdlock.h"

/* It is our turn: makes our mark, with slots one of a number that nobody has, as k->slot.
   k->marked stays false if there is none. GONE: our key is not there any more. */
enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until);

/* Takes our key and the mark away, both at once: the lock is free. GONE: the key went before. */
enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until);

/* Takes the mark away, the key being gone: nothing runs under the lock any more. */
enum etcd_reply etcdmark_remove(struct etcdlock *k, int64_t until);

/* Sees to it that the orphan in k->place goes when its holder's time has run out. */
void etcdmark_condemn(struct etcdlock *k, int64_t until);

#endif
