/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_watch.h - learns at once of a change of keys. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_WATCH_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_WATCH_H

#include "locksmith/etcd/etcd_queue.h"
#include "locksmith/etcd/etcd_rpc.h"

struct etcd_watch {
	struct grpc_call call; /* call.transfer.ended: the stream is over */
	bool deleted; /* a watched key went away */
	bool stirred; /* there was a change, or the watch was cancelled */
	bool cancelled; /* by the server, mostly because it has compacted that revision */
	char key[ETCD_KEY];    /* the first that is watched */
	unsigned int endpoint; /* that is asked */
};

/* Watches those keys for deletions, and with puts for all changes, since revision. An earlier watch
   ends. Without memory there is none. */
void etcd_watch_start(struct etcd_watch *watch, struct etcd_rpc *rpc, const struct etcd_span *keys,
    bool puts, int64_t revision);

/* True if the watch has ended or has an event: start a new one. */
bool etcd_watch_over(const struct etcd_watch *watch);

void etcd_watch_stop(struct etcd_watch *watch);

#endif
