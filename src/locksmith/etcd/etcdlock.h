/* locksmith/etcd/etcdlock.h - a lock that is a key under a lease, and its calls.

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

/* Makes the request for a lease of that many seconds. */
void etcdlock_ask_lease(struct pb_out *request, int64_t seconds);

/* Reads an answer to a request for a lease of at least *seconds; sets *id, and *seconds to what the server granted.
   False: it granted none. */
bool etcdlock_granted(struct pb answer, int64_t *seconds, int64_t *id);

/* Gets a lease of at least *seconds; sets *seconds to what the server granted. */
enum etcd_reply etcdlock_lease(struct etcdlock *k, int64_t *seconds, int64_t *id, int64_t until);

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

/* etcd_acquire.c: EXIT_RELEASED with k->held set, or the status to end with; call etcd_leave then. */
int etcd_acquire(struct etcdlock *k, struct failure *failure);

/* Removes our key from the queue, and the mark, which is there if the reply to enter was lost. */
void etcd_leave(struct etcdlock *k, int64_t until);

/* etcd_hold.c: keeps the lock until protocol_released() or its loss. Returns the exit status. */
int etcd_hold(struct etcdlock *k, struct failure *failure);

#endif
