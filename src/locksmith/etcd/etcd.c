#include <config.h>

#include "locksmith/common/engine.h"

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdctl.h"
#include "locksmith/etcd/etcdlock.h"
#include "locksmith/etcd/etcdmark.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_TTL (15 * NS_PER_S)
#define LEAST_ENDPOINT_TIMEOUT (300 * NS_PER_MS)
#define MOST_ENDPOINT_TIMEOUT (5 * NS_PER_S) /* with a long lease, too, a silent endpoint is soon passed over */
#define FIRST_TIMEOUT (5 * NS_PER_S / 2) /* before the first answer there is no lease that could end */
#define FIRST_ANSWER (10 * NS_PER_S)

enum { STATUS_VERSION = 2 }; /* a field of etcd's StatusResponse */

/* Adds a holder line for each mark whose key has gone; those holders come first. */
static size_t say_orphans(struct pb kvs, struct pb marks)
{
	struct etcd_kv mark;
	char text[600];
	size_t n = 0;

	while (txn_next(&marks, &mark)) {
		if (etcdqueue_pair(kvs, &mark))
			continue;
		etcdqueue_describe(&mark, text, sizeof text);
		say("WHO state=holds %s", text);
		n++;
	}
	return n;
}

static size_t say_keys(struct pb kvs, struct pb marks)
{
	struct etcd_kv kv;
	char text[600];
	size_t n = 0;

	for (bool first = true; txn_next(&kvs, &kv); first = false) {
		if (etcdqueue_is_mark(&kv))
			continue;
		etcdqueue_describe(&kv, text, sizeof text);
		say("WHO state=%s %s", etcdqueue_holds(&kv, marks, first) ? "holds" : "waits", text);
		n++;
	}
	return n;
}

static int etcd_who(struct etcdlock *k, struct failure *failure)
{
	struct pb kvs, marks;
	size_t n;

	if (etcdlock_range(k, clock_boottime() + FIRST_ANSWER, &kvs, &marks) != ETCD_OK) {
		*failure = k->etcd.failure;
		return failure->status;
	}
	n = say_orphans(kvs, marks);
	n += say_keys(kvs, marks);
	return n > 0 ? EXIT_BUSY : EXIT_RELEASED;
}

static bool etcd_expect(struct etcdlock *k, const char *what, enum etcd_reply reply, bool right)
{
	right = right && reply == ETCD_OK;
	if (right)
		say("CHECK ok %s", what);
	else
		say("CHECK no %s: %s", what, reply != ETCD_OK ? k->etcd.failure.text : "it is not so");
	return right;
}

static void say_version(struct etcdlock *k)
{
	struct pb_out request;
	struct pb answer;
	char version[40];

	pb_start(&request);
	if (etcdrpc_call(&k->etcd, ETCD_STATUS, &request, clock_boottime() + FIRST_ANSWER, &answer) != ETCD_OK)
		return;
	pb_string(pb_bytes(answer, STATUS_VERSION, 0), version, sizeof version);
	say("CHECK note etcd %s; before 3.5.13 (3.4.31) a leader that was stopped can revoke "
	    "leases that were "
	    "renewed: use SEMLOCK_TOKEN",
	    version[0] != '\0' ? version : "of unknown version");
}

/* Tries each step on a name of its own. */
static int etcd_check(struct etcdlock *k, struct failure *failure)
{
	int64_t until = clock_boottime() + FIRST_ANSWER;
	bool made = false, fit;
	enum etcd_reply reply;

	snprintf(
	    k->name, sizeof k->name, "%s#check-%lld", k->options->url.path, (long long)clock_boottime());
	etcdqueue_init(&k->queue, k->name, k->options);
	if (etcdlock_grant(k, until) != ETCD_OK) {
		*failure = k->etcd.failure;
		return failure->status;
	}
	fit = etcd_expect(k, "a lease is granted", ETCD_OK, true);
	if (fit) {
		reply = etcdlock_queue(k, -1, until, &made);
		fit = etcd_expect(k, "a key can be made under it", reply, made);
	}
	if (fit) {
		reply = etcdlock_look(k, k->revision, until);
		fit = etcd_expect(k, "and is seen", reply, k->place.found);
	}
	if (fit) {
		reply = etcdmark_lease(k, until);
		if (reply == ETCD_OK)
			reply = etcdmark_enter(k, until);
		fit = etcd_expect(k, "a mark can be made beside it", reply, k->marked);
	}
	fit = fit && etcd_expect(k, "and be put under a new lease", etcdmark_renew(k, until), true);
	fit = fit && etcd_expect(k, "the lease can be renewed", etcdlock_keep(k, until), true);
	fit = fit &&
	      etcd_expect(k, "the lease can be revoked", etcdlock_revoke(k, &k->lease, until), true);
	if (fit) {
		reply = etcdlock_look(k, k->revision, until);
		fit = etcd_expect(k, "and the key is gone with it", reply, !k->place.found);
	}
	etcdlock_revoke(k, &k->lease, until);
	etcdlock_revoke(k, &k->mark_lease, until);
	say_version(k);
	return fit ? EXIT_RELEASED : EXIT_UNAVAILABLE;
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
	int status;

	*k = (struct etcdlock){.options = o, .ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL, .slot = -1};
	if (o->stale_given) {
		failure_set(
		    failure, EXIT_USAGE, "--stale is not for etcd: leases (--ttl) end by themselves");
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
		status = failure->status;
	} else if (o->action == ACTION_WHO) {
		status = etcd_who(k, failure);
	} else {
		status = o->action == ACTION_CHECK ? etcd_check(k, failure) : etcd_lock(k, failure);
	}
	return status;
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
