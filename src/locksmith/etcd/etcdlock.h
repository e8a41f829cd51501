/* etcdlock - a lock that is a key under a lease, and the calls about it.

     NAME/<lease id>    our place in the queue; value: mode, pid, host (etcdctl's are empty)
     NAME#held/...      who has the lock has said so, and takes it back when it is done (etcdmark.h)

   In the order of their creation, which etcd makes: an exclusive key waits for all before it, a
   shared one for all that are not shared, a slot for all that are no slots and until fewer than N
   are before it. */
#ifndef LOCKSMITH_ETCDLOCK_H
#define LOCKSMITH_ETCDLOCK_H

#include "locksmith/etcd/etcdqueue.h"
#include "locksmith/etcd/etcdrpc.h"
#include "locksmith/etcd/etcdwatch.h"
#include "locksmith/common/options.h"

struct etcdlock {
	const struct options *options;
	char name[600];
	struct etcd etcd;
	struct etcdwatch watch;
	int64_t ttl;				/* nanoseconds, as the server granted it */
	int64_t lease;				/* its id; 0: none */
	int64_t deadline;			/* the lease cannot end before */
	int64_t revision;			/* our key's create_revision: the fencing token */
	int64_t seen;				/* revision of the store at the last look */
	int slot;				/* -1: none */
	char key[1600], first[1400], end[1400]; /* base64: our key, and the range of all keys */
	char marks[1400], marks_end[1400];	/* and that of all marks */
	char mark[1600], mark_value[1400];	/* our mark ... */
	bool marked;				/* ... which is there, as far as we know */
	struct etcdqueue_place place;
};

/* Gets a lease. */
enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until);

/* Prolongs the lease: OK, or GONE, or SILENT. */
enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until);

/* Puts our key at the end of the queue. With unless_newer >= 0 only if no key of the lock was made
   after that revision; *made is false if one was. */
enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made);

/* Looks where we are in the queue, or where a newcomer would be if revision is INT64_MAX. */
enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until);

/* Gives lease and keys back. GONE: there was no such lease any more. */
enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t until);

/* All keys of the lock, in order, and all marks, of one moment; *answer, to be given back, is what
   they are in. */
enum etcd_reply etcdlock_range(
    struct etcdlock *k, int64_t until, json_t **answer, json_t **kvs, json_t **marks);

/* etcd_acquire.c: EXIT_RELEASED with k->revision set when held, or the status to end with. */
int etcd_acquire(struct etcdlock *k, struct why *why);

/* etcd_hold.c: keeps the lock until it is to be let go or is lost. The exit status. */
int etcd_hold(struct etcdlock *k, struct why *why);

#endif
