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
	ETCD_BUSY,      /* not from a call: another key is before ours */
	ETCD_AGAIN,     /* not from a call: no key is before ours any more */
	ETCD_SILENT,    /* no endpoint gave a valid answer; the request may have been carried out */
	ETCD_GONE,      /* the lease does not exist */
	ETCD_FULL,      /* the store is out of space: error is filled; reads and keepalives still
	                 * work */
	ETCD_FATAL = -1 /* another try would fail, too: error is filled */
};

/* How long an endpoint may take to answer, in nanoseconds.  A slow endpoint gets more than usual:
 * to break a request off and send it again would make more work for it. */
struct etcd_timeouts {
	int64_t first; /* until an endpoint has answered */
	int64_t usual;
	int64_t most;        /* after slow answers */
	int64_t most_silent; /* after missing answers, each of which doubles the time */
};

struct etcd_rpc {
	const struct url *url;
	char base[URL_HOSTS][300];
	char failed[URL_HOSTS][200]; /* what failed at each endpoint in this call; "": nothing */
	bool away;                   /* an endpoint may answer later */
	/* an endpoint that we connected to, or may have, is silent */
	bool slow;
	unsigned int current; /* the endpoint that is asked first */
	struct grpc_call call;
	char token[2000]; /* of the login; "": none */
	struct login login;
	struct etcd_timeouts timeouts;
	int64_t patience; /* how long the next answer may take, if more than the timeout; ns */
	bool connected;   /* to an endpoint, at any time */
	bool reached;     /* an endpoint has answered */
	bool unsure;      /* a try of the last call got no answer, but may have been carried out */
	/* an endpoint is etcd's grpc-proxy: keep a keepalive's request open until its answer */
	bool proxy;
	const bool *abort;           /* set by a watch: break the call off; may be NULL */
	struct protobuf_out request; /* of the next call */
	struct protobuf answer;      /* of the last call that was OK; valid until the next one */
	struct error error;
};

/* Prepare RPC, which is zeroed but for its timeouts and CONNECTED, and log in by the moment UNTIL
 * if a user is named.  Returns ETCD_OK, or error is filled. */
enum etcd_reply etcd_rpc_open(struct etcd_rpc *rpc, const struct url *url, int64_t until);

/* Begin the request of the next call, and return it. */
struct protobuf_out *etcd_rpc_begin(struct etcd_rpc *rpc);

/* Call a method with the request that was begun; with ETCD_OK, rpc->answer is set.  Asks the
 * endpoints in turn, again and again, until the moment UNTIL. */
enum etcd_reply etcd_rpc_call(struct etcd_rpc *rpc, const char *method, int64_t until);

/* From now on the next endpoint is asked first. */
void etcd_rpc_rotate(struct etcd_rpc *rpc);

/* Close RPC's connection, if it is open, and forget its password. */
void etcd_rpc_close(struct etcd_rpc *rpc);

/* Report a change of keys at once. */
struct etcd_watch {
	struct grpc_call call; /* call.transfer.ended: the stream is over */
	bool deleted;          /* a watched key was deleted */
	bool heard;            /* the server has answered, so the watch exists */
	bool event;            /* there was a change, or the watch was cancelled */
	bool cancelled;        /* by the server, usually because it has compacted that revision */
	char key[ETCD_KEY];    /* the first that is watched */
	unsigned int endpoint; /* that is asked */
};

/* Watch KEYS from REVISION on: for deletions; if PUTS, also for puts.  Replaces an earlier watch.
 * If out of memory, there is no watch, and etcd_watch_over() is true. */
void etcd_watch_start(struct etcd_watch *watch, struct etcd_rpc *rpc, const struct etcd_span *keys,
    bool puts, int64_t revision);

/* True if the watch has ended or has an event: start a new one. */
bool etcd_watch_over(const struct etcd_watch *watch);

/* End WATCH, if there is one, and forget what it has seen. */
void etcd_watch_stop(struct etcd_watch *watch);

#endif
