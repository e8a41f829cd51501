/* SPDX-License-Identifier: MIT */
#include <config.h>


#include "locksmith/common/moment.h"
#include "locksmith/etcd/etcd_env.h"
#include "locksmith/etcd/etcd_lock.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_TTL (15 * SECOND)
#define LEAST_ENDPOINT_TIMEOUT (300 * MILLISECOND)
#define MOST_ENDPOINT_TIMEOUT (5 * SECOND) /* with a long lease, too, a silent endpoint is soon passed over */
#define FIRST_TIMEOUT (5 * SECOND / 2) /* before the first answer there is no lease that could end */
#define FIRST_ANSWER (10 * SECOND)

static enum engine_outcome etcd_who(struct etcd_lock *lock, struct error *error)
{
	struct etcd_kv key;
	struct pb keys;
	bool busy = false;

	if (etcd_lock_all(lock, clock_boottime() + FIRST_ANSWER, &keys) != ETCD_OK) {
		*error = lock->rpc.error;
		return FAILED;
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
	return busy ? BUSY : RELEASED;
}

static enum engine_outcome etcd_take(struct etcd_lock *lock, struct error *error)
{
	enum engine_outcome outcome = etcd_acquire(lock, error);

	if (outcome == BUSY)
		say("BUSY %s", lock->place.who);
	if (outcome != TAKEN)
		return outcome;
	outcome = etcd_hold(lock, error);
	etcd_watch_stop(&lock->watch);
	return outcome;
}

static struct etcd_lock the_lock; /* too large for the stack */

static enum engine_outcome etcd_run(const struct options *o, struct error *error)
{
	struct etcd_lock *lock = &the_lock;
	int64_t endpoint_timeout, first_timeout;

	*lock = (struct etcd_lock){.options = o, .ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL, .slot = -1};
	if (o->stale_given) {
		error_plain(error, ERROR_USAGE, "--stale is not for etcd: leases (--ttl) end by themselves");
		return FAILED;
	}
	endpoint_timeout = lock->ttl / 6 > LEAST_ENDPOINT_TIMEOUT ? earlier(lock->ttl / 6, MOST_ENDPOINT_TIMEOUT)
							       : LEAST_ENDPOINT_TIMEOUT;
	snprintf(lock->name, sizeof lock->name, "%s", o->url.path);
	etcd_queue_init(&lock->queue, lock->name, lock->options);
	first_timeout = endpoint_timeout > FIRST_TIMEOUT ? endpoint_timeout : FIRST_TIMEOUT;
	if (o->no_wait) { /* a silent endpoint leaves time for the others */
		first_timeout = earlier(first_timeout, (o->answer_by - clock_boottime()) / o->url.hosts);
		endpoint_timeout = earlier(endpoint_timeout, first_timeout);
	}
	if (etcd_rpc_open(&lock->rpc, &o->url, first_timeout, endpoint_timeout,
		earlier(clock_boottime() + FIRST_ANSWER, o->answer_by)) != ETCD_OK) {
		*error = lock->rpc.error;
		return FAILED;
	}
	if (o->action == ACTION_WHO)
		return etcd_who(lock, error);
	return etcd_take(lock, error);
}

static void etcd_end(bool stopped)
{
	struct etcd_lock *lock = &the_lock;

	lock->rpc.abort = NULL;
	etcd_watch_stop(&lock->watch);
	if (lock->token == 0) /* after the answer is said, which may not come late if the server is silent now */
		etcd_lock_revoke(lock, clock_boottime() + (protocol_released() ? lock->ttl / 3 : SECOND));
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
