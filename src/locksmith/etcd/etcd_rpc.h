/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_rpc.h - calls to an etcd cluster, and watches of its keys.  They try one
 * endpoint after another, log in, and turn failures into errors. */
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

enum etcd_reply {
	ETCD_OK,
	ETCD_BUSY,   /* never from etcd_rpc_call(): another key is before ours */
	ETCD_AGAIN,  /* never from etcd_rpc_call(): no key is before ours any more */
	ETCD_SILENT, /* no endpoint gave a valid answer; the request may have been carried out */
	ETCD_GONE,   /* our lease, or our key, no longer exists */
	/* the store is out of space, but reads and keepalives still work; error is filled */
	ETCD_FULL,
	ETCD_FATAL = -1 /* another try would fail, too; error is filled */
};

/* How long an endpoint may take to answer, in nanoseconds.  A slow endpoint gets more time than
 * usual: if we broke the request off and sent it again, the endpoint would have even more work. */
struct etcd_timeouts {
	int64_t first; /* the limit before the first answer of any endpoint */
	int64_t usual;
	int64_t most;        /* the limit after slow answers */
	int64_t most_silent; /* the limit after missing answers, each of which doubles the time */
};

struct etcd_rpc {
	const struct url *url;
	char base[URL_HOSTS][300];
	char failed[URL_HOSTS][200]; /* what failed at each endpoint in this call; "": nothing */
	bool away;                   /* an endpoint has failed in a way that may pass */
	/* an endpoint does not answer, although we have connected to it, or may have */
	bool slow;
	unsigned int current; /* the endpoint that is asked first */
	struct grpc_call call;
	char token[2000]; /* from the login; "": none */
	struct login login;
	struct etcd_timeouts timeouts;
	/* in ns; how long the next answer may take, if that is more than the timeout */
	int64_t patience;
	bool connected; /* we have been connected to an endpoint at least once */
	bool reached;   /* an endpoint has answered */
	bool unsure; /* a try of the last call got no valid answer: etcd may have carried it out */
	/* an endpoint is etcd's grpc-proxy: a keepalive's request must stay open until the answer
	 * comes */
	bool proxy;
	const bool *abort; /* when a watch sets this to true, break the call off; may be NULL */
	struct protobuf_out request; /* of the next call */
	struct protobuf answer;      /* of the last call that was OK; valid until the next one */
	struct error error;
};

/* Prepare RPC, and if a user is named, log in by the moment UNTIL.  The caller has zeroed RPC,
 * except rpc->timeouts and rpc->connected.  Returns ETCD_OK; otherwise rpc->error is filled. */
enum etcd_reply etcd_rpc_open(struct etcd_rpc *rpc, const struct url *url, int64_t until);

/* Empty the next call's request, and return it for the caller to fill. */
struct protobuf_out *etcd_rpc_begin(struct etcd_rpc *rpc);

/* Call METHOD with the request that was begun.  Asks the endpoints in turn, again and again, until
 * the moment UNTIL.  With ETCD_OK, rpc->answer is set. */
enum etcd_reply etcd_rpc_call(struct etcd_rpc *rpc, const char *method, int64_t until);

/* From now on, ask the next endpoint first. */
void etcd_rpc_rotate(struct etcd_rpc *rpc);

/* End RPC's call, if it is open, and forget the password. */
void etcd_rpc_close(struct etcd_rpc *rpc);

/* A stream on which the server reports a change of keys at once. */
struct etcd_watch {
	struct grpc_call call; /* call.transfer.ended: the stream is over */
	bool deleted;          /* a watched key was deleted */
	bool heard;            /* the server has answered, so the watch exists */
	bool event;            /* there was a change, or the watch was cancelled */
	/* the server cancelled the watch, usually because it had compacted the first revision to
	 * watch */
	bool cancelled;
	char key[ETCD_KEY];    /* the first of the watched keys */
	unsigned int endpoint; /* the endpoint that the watch is on */
};

/* Watch KEYS for deletions, and if PUTS, also for puts, from REVISION on.  Replaces an earlier
 * watch.  If memory is short, there is no watch, and etcd_watch_over() is true. */
void etcd_watch_start(struct etcd_watch *watch, struct etcd_rpc *rpc, const struct etcd_span *keys,
    bool puts, int64_t revision);

/* True if there is no watch, or it has ended, or it has reported an event: then a new one is
 * needed. */
bool etcd_watch_over(const struct etcd_watch *watch);

/* End WATCH, if there is one, and forget what it has seen. */
void etcd_watch_stop(struct etcd_watch *watch);

#endif
