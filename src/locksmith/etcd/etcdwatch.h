/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcdwatch.h - learns at once of a change of keys. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDWATCH_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDWATCH_H

#include "locksmith/etcd/etcdqueue.h"
#include "locksmith/etcd/etcdrpc.h"

struct etcdwatch {
	struct grpc_call call; /* call.transfer.ended: the stream is over */
	bool deleted; /* a watched key went away */
	bool stirred; /* there was a change, or the watch was cancelled */
	bool cancelled; /* by the server, mostly because it has compacted that revision */
	char key[ETCD_KEY];    /* the first that is watched */
	unsigned int endpoint; /* that is asked */
};

/* Watches those keys for deletions, and with puts for all changes, since revision. An earlier watch
   ends. Without memory there is none. */
void etcdwatch_start(struct etcdwatch *w, struct etcd *e, const struct etcdqueue_span *keys,
    bool puts, int64_t revision);

/* True if the watch has ended or has an event: start a new one. */
bool etcdwatch_over(const struct etcdwatch *w);

void etcdwatch_stop(struct etcdwatch *w);

#endif
