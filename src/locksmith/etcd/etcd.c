/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/engine.h"

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdctl.h"
#include "locksmith/etcd/etcdlock.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_TTL (15 * NS_PER_S)
#define LEAST_ENDPOINT_TIMEOUT (300 * NS_PER_MS)
#define MOST_ENDPOINT_TIMEOUT (5 * NS_PER_S) /* with a long lease, too, a silent endpoint is soon passed over */
#define FIRST_TIMEOUT (5 * NS_PER_S / 2) /* before the first answer there is no lease that could end */
#define FIRST_ANSWER (10 * NS_PER_S)

static size_t say_who(const struct etcd_kv *kv, bool holds)
{
	char text[600];

	etcdqueue_describe(kv, text, sizeof text);
	say("WHO state=%s %s", holds ? "holds" : "waits", text);
	return 1;
}

/* A mark whose key has gone is a holder; those come first. */
static size_t say_all(struct pb kvs, struct pb marks)
{
	struct etcd_kv kv;
	size_t n = 0;

	for (struct pb rest = marks; txn_next(&rest, &kv);)
		if (!etcdqueue_pair(kvs, &kv))
			n += say_who(&kv, true);
	for (bool first = true; txn_next(&kvs, &kv); first = false)
		if (!etcdqueue_is_mark(&kv))
			n += say_who(&kv, etcdqueue_holds(&kv, marks, first));
	return n;
}

static int etcd_who(struct etcdlock *k, struct failure *failure)
{
	struct pb kvs, marks;

	if (etcdlock_range(k, clock_boottime() + FIRST_ANSWER, &kvs, &marks) != ETCD_OK) {
		*failure = k->etcd.failure;
		return failure->status;
	}
	return say_all(kvs, marks) > 0 ? EXIT_BUSY : EXIT_RELEASED;
}

static int etcd_lock(struct etcdlock *k, struct failure *failure)
{
	int status = etcd_acquire(k, failure);

	if (status == EXIT_BUSY)
		say("BUSY %s", k->place.who);
	if (!k->held)
		return status;
	status = etcd_hold(k, failure);
	etcdwatch_stop(&k->watch);
	return status;
}

static struct etcdlock the_lock; /* too large for the stack */

static int etcd_run(const struct options *o, struct failure *failure)
{
	struct etcdlock *k = &the_lock;
	int64_t endpoint_timeout, first_timeout;

	*k = (struct etcdlock){.options = o, .ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL, .slot = -1};
	if (o->stale_given) {
		failure_set(failure, EXIT_USAGE, "--stale is not for etcd: leases (--ttl) end by themselves");
		return EXIT_USAGE;
	}
	endpoint_timeout = k->ttl / 6 > LEAST_ENDPOINT_TIMEOUT ? clock_min(k->ttl / 6, MOST_ENDPOINT_TIMEOUT)
							       : LEAST_ENDPOINT_TIMEOUT;
	snprintf(k->name, sizeof k->name, "%s", o->url.path);
	etcdqueue_init(&k->queue, k->name, k->options);
	first_timeout = endpoint_timeout > FIRST_TIMEOUT ? endpoint_timeout : FIRST_TIMEOUT;
	if (o->no_wait) { /* a silent endpoint leaves time for the others */
		first_timeout = clock_min(first_timeout, (o->answer_by - clock_boottime()) / o->url.hosts);
		endpoint_timeout = clock_min(endpoint_timeout, first_timeout);
	}
	if (etcdrpc_open(&k->etcd, &o->url, first_timeout, endpoint_timeout,
		clock_min(clock_boottime() + FIRST_ANSWER, o->answer_by)) != ETCD_OK) {
		*failure = k->etcd.failure;
		return failure->status;
	}
	if (o->action == ACTION_WHO)
		return etcd_who(k, failure);
	return etcd_lock(k, failure);
}

static void etcd_end(bool stopped)
{
	struct etcdlock *k = &the_lock;

	k->etcd.abort = NULL;
	if (!k->held) /* after the answer is said, which may not come late if the server is silent now */
		etcd_leave(k, clock_boottime() + (protocol_released() ? k->ttl / 3 : NS_PER_S));
	else if (k->marked && stopped)
		etcdmark_remove(k, clock_boottime() + k->ttl);
	etcdrpc_close(&k->etcd);
}

const struct engine engine = {
    .name = "etcd",
    .schemes = "etcd etcds",
    .words = "shared slots order token queue-max",
    .parse = etcdctl_url,
    .run = etcd_run,
    .end = etcd_end,
};
