/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/engine.h"

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcd_env.h"
#include "locksmith/etcd/etcd_lock.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_TTL (15 * NS_PER_S)
#define LEAST_ENDPOINT_TIMEOUT (300 * NS_PER_MS)
#define MOST_ENDPOINT_TIMEOUT (5 * NS_PER_S) /* with a long lease, too, a silent endpoint is soon passed over */
#define FIRST_TIMEOUT (5 * NS_PER_S / 2) /* before the first answer there is no lease that could end */
#define FIRST_ANSWER (10 * NS_PER_S)

static int etcd_who(struct etcd_lock *lock, struct failure *failure)
{
	struct etcd_kv key;
	struct pb keys;
	bool busy = false;

	if (etcd_lock_all(lock, clock_boottime() + FIRST_ANSWER, &keys) != ETCD_OK) {
		*failure = lock->rpc.failure;
		return failure->status;
	}
	for (bool first = true; etcd_txn_next(&keys, &key); first = false) {
		char text[600];

		busy = true;
		/* The number of a slot is that of a key, unless another program has put it. */
		if (etcd_queue_is_number(&lock->queue, &key) && etcd_queue_holds(&key, false))
			continue;
		etcd_queue_describe(&key, text, sizeof text);
		say("WHO state=%s %s", etcd_queue_holds(&key, first) ? "holds" : "waits", text);
	}
	return busy ? EXIT_BUSY : EXIT_RELEASED;
}

static int etcd_take(struct etcd_lock *lock, struct failure *failure)
{
	int status = etcd_acquire(lock, failure);

	if (status == EXIT_BUSY)
		say("BUSY %s", lock->place.who);
	if (lock->token == 0)
		return status;
	status = etcd_hold(lock, failure);
	etcd_watch_stop(&lock->watch);
	return status;
}

static struct etcd_lock the_lock; /* too large for the stack */

static int etcd_run(const struct options *o, struct failure *failure)
{
	struct etcd_lock *lock = &the_lock;
	int64_t endpoint_timeout, first_timeout;

	*lock = (struct etcd_lock){.options = o, .ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL, .slot = -1};
	if (o->stale_given) {
		failure_set(failure, EXIT_USAGE, "--stale is not for etcd: leases (--ttl) end by themselves");
		return EXIT_USAGE;
	}
	endpoint_timeout = lock->ttl / 6 > LEAST_ENDPOINT_TIMEOUT ? clock_min(lock->ttl / 6, MOST_ENDPOINT_TIMEOUT)
							       : LEAST_ENDPOINT_TIMEOUT;
	snprintf(lock->name, sizeof lock->name, "%s", o->url.path);
	etcd_queue_init(&lock->queue, lock->name, lock->options);
	first_timeout = endpoint_timeout > FIRST_TIMEOUT ? endpoint_timeout : FIRST_TIMEOUT;
	if (o->no_wait) { /* a silent endpoint leaves time for the others */
		first_timeout = clock_min(first_timeout, (o->answer_by - clock_boottime()) / o->url.hosts);
		endpoint_timeout = clock_min(endpoint_timeout, first_timeout);
	}
	if (etcd_rpc_open(&lock->rpc, &o->url, first_timeout, endpoint_timeout,
		clock_min(clock_boottime() + FIRST_ANSWER, o->answer_by)) != ETCD_OK) {
		*failure = lock->rpc.failure;
		return failure->status;
	}
	if (o->action == ACTION_WHO)
		return etcd_who(lock, failure);
	return etcd_take(lock, failure);
}

static void etcd_end(bool stopped)
{
	struct etcd_lock *lock = &the_lock;

	lock->rpc.abort = NULL;
	etcd_watch_stop(&lock->watch);
	if (lock->token == 0) /* after the answer is said, which may not come late if the server is silent now */
		etcd_lock_revoke(lock, clock_boottime() + (protocol_released() ? lock->ttl / 3 : NS_PER_S));
	else if (stopped)
		etcd_lock_release(lock, clock_boottime() + lock->ttl);
	etcd_rpc_close(&lock->rpc);
}

const struct engine engine = {
    .name = "etcd",
    .schemes = "etcd etcds",
    .words = "shared slots order token queue-max",
    .parse = etcd_env_url,
    .run = etcd_run,
    .end = etcd_end,
};
