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

enum { STATUS_VERSION = 2 }; /* a field of etcd's StatusResponse */

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

/* RIGHT is read after the call that REPLY is of. */
static bool etcd_expect(struct etcdlock *k, const char *what, enum etcd_reply reply, const bool *right)
{
	if (reply == ETCD_OK && *right)
		say("CHECK ok %s", what);
	else
		say("CHECK no %s: %s", what, reply != ETCD_OK ? k->etcd.failure.text : "it is not so");
	return reply == ETCD_OK && *right;
}

static enum etcd_reply check_mark(struct etcdlock *k, int64_t until)
{
	enum etcd_reply reply = etcdmark_lease(k, until);

	return reply == ETCD_OK ? etcdmark_enter(k, until) : reply;
}

static enum etcd_reply check_gone(struct etcdlock *k, int64_t until, bool *gone)
{
	enum etcd_reply reply = etcdlock_look(k, k->revision, until);

	*gone = !k->place.found;
	return reply;
}

static void say_version(struct etcdlock *k)
{
	char version[40];

	etcdrpc_begin(&k->etcd);
	if (etcdrpc_call(&k->etcd, ETCD_STATUS, clock_boottime() + FIRST_ANSWER) != ETCD_OK)
		return;
	pb_string(pb_bytes(k->etcd.answer, STATUS_VERSION, 0), version, sizeof version);
	say("CHECK note etcd %s; before 3.5.13 (3.4.31) a leader that was stopped can revoke leases that were "
	    "renewed: use SEMLOCK_TOKEN",
	    version[0] != '\0' ? version : "of unknown version");
}

/* Tries each step on a name of its own. */
static int etcd_check(struct etcdlock *k, struct failure *failure)
{
	int64_t until = clock_boottime() + FIRST_ANSWER;
	const bool yes = true;
	bool made = false, gone = false, fit;

	snprintf(k->name, sizeof k->name, "%s#check-%lld", k->options->url.path, (long long)clock_boottime());
	etcdqueue_init(&k->queue, k->name, k->options);
	if (etcdlock_grant(k, until) != ETCD_OK) {
		*failure = k->etcd.failure;
		return failure->status;
	}
	fit = etcd_expect(k, "a lease is granted", ETCD_OK, &yes) &&
	      etcd_expect(k, "a key can be made under it", etcdlock_queue(k, -1, until, &made), &made) &&
	      etcd_expect(k, "and is seen", etcdlock_look(k, k->revision, until), &k->place.found) &&
	      etcd_expect(k, "a mark can be made beside it", check_mark(k, until), &k->marked) &&
	      etcd_expect(k, "and be put under a new lease", etcdmark_renew(k, until), &yes) &&
	      etcd_expect(k, "the lease can be renewed", etcdlock_keep(k, until), &yes) &&
	      etcd_expect(k, "the lease can be revoked", etcdlock_revoke(k, &k->lease, until), &yes) &&
	      etcd_expect(k, "and the key is gone with it", check_gone(k, until, &gone), &gone);
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
	return o->action == ACTION_CHECK ? etcd_check(k, failure) : etcd_lock(k, failure);
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
