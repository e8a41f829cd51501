/* locksmith/etcd/etcdlock.h - a lock that is a key under a lease, and the calls about it.

     NAME/<lease id>            our place in the queue; value: mode, pid, host (etcdctl's are empty)
     NAME/#shared/<lease id>    the same of a shared key,
     NAME/#slots/<lease id>     and with slots (etcdqueue.h)
     NAME#held/...              the marks of the holders (etcdmark.h)

   The queue is in the order of creation, which etcd makes. */
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
	int64_t deadline;   /* the lease cannot end before */
	int64_t revision;   /* our key's create_revision: our place in the queue */
	int64_t seen;	    /* revision of the store at the last look */
	int64_t mark_lease; /* our mark's; 0: none */
	int64_t mark_made;  /* its create_revision: the fencing token */
	bool marked;	    /* the mark is there, as far as we know */
	int slot;	    /* -1: none */
	struct etcdqueue_keys keys, marks;
	char key[ETCD_KEY], mark[ETCD_KEY]; /* ours, in base64, */
	char value[ETCD_KEY];		    /* and what both say */
	struct etcdqueue_place place;
};

/* An integer for a request: a JSON number would lose its last digits on the way. */
json_t *etcdlock_number(int64_t n);

/* Fills in where the keys of k->name are. */
void etcdlock_keys(struct etcdlock *k);

/* Gets a lease of at least so many seconds; *seconds is what it got. */
enum etcd_reply etcdlock_lease(struct etcdlock *k, int64_t *seconds, int64_t *id, int64_t until);

/* Gets the lease of our key. */
enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until);

/* Prolongs that lease: OK, or GONE, or SILENT. */
enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until);

/* Puts our key at the end of the queue, and looks where that is. With unless_newer >= 0 only if no
   key of the lock was put after that revision; *made is false if one was. */
enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made);

/* Looks where our key made at revision is in the queue, or where a newcomer would be if that is
   INT64_MAX. */
enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until);

/* Gives *lease back, and what is under it. GONE: there was no such lease any more. */
enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t *lease, int64_t until);

/* All keys of the lock, in order, and all marks, of one moment, for --who; *answer, to be given back,
   is what they are in. */
enum etcd_reply etcdlock_range(
    struct etcdlock *k, int64_t until, json_t **answer, json_t **kvs, json_t **marks);

/* etcd_acquire.c: EXIT_RELEASED with k->revision set when held, or the status to end with. */
int etcd_acquire(struct etcdlock *k, struct failure *failure);

/* etcd_hold.c: keeps the lock until it is to be let go or is lost. The exit status. */
int etcd_hold(struct etcdlock *k, struct failure *failure);

#endif
