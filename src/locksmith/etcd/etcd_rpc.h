/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_rpc.h - calls to an etcd cluster, and watches of its keys: endpoints in turn,
 * login, errors. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_RPC_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/common/url.h"
#include "locksmith/etcd/etcd_wire.h"
#include "locksmith/etcd/grpc.h"
#include "report/error.h"

#define ETCD_TXN "/etcdserverpb.KV/Txn"
#define ETCD_GRANT "/etcdserverpb.Lease/LeaseGrant"
#define ETCD_REVOKE "/etcdserverpb.Lease/LeaseRevoke"
#define ETCD_KEEPALIVE "/etcdserverpb.Lease/LeaseKeepAlive"
#define ETCD_WATCH "/etcdserverpb.Watch/Watch"
#define ETCD_LOGIN "/etcdserverpb.Auth/Authenticate"
#define ETCD_STATUS "/etcdserverpb.Maintenance/Status"

enum etcd_reply {
	ETCD_OK,
	ETCD_BUSY,      /* not of a call: another key is before ours */
	ETCD_SILENT,    /* no endpoint gave an answer that counts; the request may have been done */
	ETCD_GONE,      /* there is no such lease */
	ETCD_FULL,      /* the store has no room: error is filled; reads and keepalives go on */
	ETCD_FATAL = -1 /* another try is of no use: error is filled */
};

/* The time that an endpoint may take for an answer, in nanoseconds: of a slow one more than usual,
 * as a request that is broken off and sent again is more work for it. */
struct etcd_timeouts {
	int64_t first; /* as long as none has answered */
	int64_t usual;
	int64_t most;        /* after answers that took long */
	int64_t most_silent; /* after some that did not come in time: each doubles the time */
};

struct etcd_rpc {
	const struct url *url;
	char base[URL_HOSTS][300];
	char failed[URL_HOSTS][200]; /* what failed at each endpoint in this call; "": nothing */
	bool away;                   /* an endpoint may answer later */
	/* one is silent that was connected to, now or before, or perhaps was */
	bool slow;
	unsigned int current; /* the endpoint that is asked first */
	struct grpc_call call;
	char token[2000]; /* of the login; "": none */
	struct login login;
	struct etcd_timeouts timeouts;
	int64_t patience; /* the time for the next answer, where that is more, in nanoseconds */
	bool connected;   /* to an endpoint, at any time */
	bool reached;     /* an endpoint has answered */
	bool unsure; /* the last call, refused in the end, may have been done by an earlier try */
	/* an endpoint is etcd's grpc-proxy: the request of a keepalive stays open until its
	 * answer */
	bool proxy;
	const bool *abort;           /* set by a watch: the call is broken off; may be NULL */
	struct protobuf_out request; /* of the next call */
	struct protobuf answer;      /* of the last call that was OK; valid until the next one */
	struct error error;
};

/* Prepare RPC, which is all zero but for its timeouts and CONNECTED, and log in until that moment
 * if a user is named.  OK, or error is filled. */
enum etcd_reply etcd_rpc_open(struct etcd_rpc *rpc, const struct url *url, int64_t until);

/* Begin the request of the next call, and return it. */
struct protobuf_out *etcd_rpc_begin(struct etcd_rpc *rpc);

/* Call a method with the request that was begun; on OK rpc->answer is set.  Goes through the
 * endpoints again and again until that moment. */
enum etcd_reply etcd_rpc_call(struct etcd_rpc *rpc, const char *method, int64_t until);

/* From now on the next endpoint is asked first. */
void etcd_rpc_rotate(struct etcd_rpc *rpc);

void etcd_rpc_close(struct etcd_rpc *rpc);

/* Report a change of keys at once. */
struct etcd_watch {
	struct grpc_call call; /* call.transfer.ended: the stream is over */
	bool deleted;          /* a watched key went away */
	bool heard;            /* the server has answered: there is the watch */
	bool event;            /* there was a change, or the watch was cancelled */
	bool cancelled;        /* by the server, mostly because it has compacted that revision */
	char key[ETCD_KEY];    /* the first that is watched */
	unsigned int endpoint; /* that is asked */
};

/* Watch those keys for deletions, and with puts for all changes, since revision.  An earlier
 * watch ends.  If memory is short there is none, and etcd_watch_over(). */
void etcd_watch_start(struct etcd_watch *watch, struct etcd_rpc *rpc, const struct etcd_span *keys,
    bool puts, int64_t revision);

/* True if the watch has ended or has an event: start a new one. */
bool etcd_watch_over(const struct etcd_watch *watch);

void etcd_watch_stop(struct etcd_watch *watch);

#endif
