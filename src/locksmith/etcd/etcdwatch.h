/* locksmith/etcd/etcdwatch.h - hears at once when a key goes away. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDWATCH_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDWATCH_H

#include "locksmith/etcd/etcdqueue.h"
#include "locksmith/etcd/etcdrpc.h"

struct etcdwatch {
	struct transfer transfer; /* transfer.ended: the stream is over */
	struct buffer text;	  /* what has come of the line under way */
	struct curl_slist *headers;
	bool deleted; /* a key that is watched went away */
	bool stirred; /* there was a change, or the server gave the watch up */
	char key[ETCD_KEY];    /* the first that is watched, in base64 */
	unsigned int endpoint; /* that is asked */
};

/* Watches those keys for deletions, and with puts for all changes, since revision. An earlier watch
   ends. 0, or -1 (no memory). */
int etcdwatch_start(struct etcdwatch *w, struct etcd *e, const struct etcdqueue_span *keys,
    bool puts, int64_t revision);

/* True if the watch hears nothing any more, or has heard something. */
bool etcdwatch_over(const struct etcdwatch *w);

void etcdwatch_stop(struct etcdwatch *w);

#endif
