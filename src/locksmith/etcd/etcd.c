/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"
#include "locksmith/etcd/etcd_key.h"
#include "locksmith/etcd/etcd_wait.h"

#define DEFAULT_TTL (15 * SECOND)
#define LEAST_ENDPOINT_TIMEOUT (300 * MILLISECOND)
/* with a long lease, too, a silent endpoint is soon passed over */
#define MOST_ENDPOINT_TIMEOUT (5 * SECOND)
/* before the first answer there is no lease that could end */
#define FIRST_TIMEOUT (5 * SECOND / 2)
#define FIRST_ANSWER (10 * SECOND)
#define MOST_PATIENCE (30 * SECOND)
#define PAUSE (SECOND / 5)
#define LONG_LEASE (60 * SECOND) /* more are revoked at the release */
#define LONGEST_URL 6000

/* Copy the hosts of LIST, "http://a:1,http://b:1", into HOSTS.  Returns -1: no room, a path, or
 * https:// for some alone. */
static int take_endpoints(const char *list, char *hosts, size_t size, bool *tls)
{
	unsigned int with = 0, all = 0;
	size_t used = 0;

	for (const char *at = list; *at != '\0'; all++) {
		size_t length;

		with += strncmp(at, "https://", 8) == 0;
		if (strncmp(at, "http://", 7) == 0 || strncmp(at, "https://", 8) == 0)
			at = strstr(at, "://") + 3;
		length = strcspn(at, ",");
		if (used + length + 2 > size || memchr(at, '/', length) != NULL)
			return -1;
		used += (size_t)snprintf(hosts + used, size - used, "%s%.*s", all > 0 ? "," : "",
		    (int)length, at);
		at += length + (at[length] == ',');
	}
	*tls = with > 0;
	return with == 0 || with == all ? 0 : -1;
}

static const char password_goes[] =
    "set ETCDCTL_USER=USER:PASSWORD, or SEMLOCK_USER and SEMLOCK_PASSWORD";

/* As url_parse(); etcd:///NAME has the hosts of ETCDCTL_ENDPOINTS, or 127.0.0.1:2379. */
static int etcd_parse(const char *text, struct url *url, struct error *error)
{
	const char *list = getenv("ETCDCTL_ENDPOINTS"), *from = strstr(text, "://"), *path;
	char hosts[LONGEST_URL / 2], whole[LONGEST_URL];
	bool tls;

	if (from == NULL)
		return url_parse(text, password_goes, url, error);
	from += 3;
	path = from + strcspn(from, "/");
	if (path > from && path[-1] != '@')
		return url_parse(text, password_goes, url, error);
	if (list == NULL || list[0] == '\0')
		list = "127.0.0.1:2379";
	if (take_endpoints(list, hosts, sizeof hosts, &tls) != 0)
		return error_plain(error, ERROR_USAGE,
		    "ETCDCTL_ENDPOINTS is to be [http://]HOST:PORT,..., or https:// for all");
	if (strlen(text) >= sizeof whole - sizeof hosts - 10)
		return error_plain(error, ERROR_USAGE, "the URL is too long");
	snprintf(whole, sizeof whole, "%s%.*s%s%s", tls ? "etcds://" : "",
	    (int)(tls ? path - from : path - text), tls ? from : text, hosts, path);
	return url_parse(whole, password_goes, url, error);
}

static enum engine_outcome etcd_who(struct etcd_lock *lock, struct error *error)
{
	struct etcd_key key;
	struct protobuf keys;
	bool busy = false;

	if (etcd_key_all(lock, clock_boottime() + FIRST_ANSWER, &keys) != ETCD_OK) {
		*error = lock->rpc.error;
		return ENGINE_FAILED;
	}
	for (bool first = true; etcd_wire_next(&keys, &key); first = false) {
		char text[600];

		busy = true;
		/* The number of a slot is that of a key, unless another program has put it. */
		if (etcd_queue_is_number(&lock->queue, &key) && etcd_queue_holds(&key, false))
			continue;
		etcd_queue_describe(&key, text, sizeof text);
		say(SAYS_WHO " " FIELD_STATE "%s %s",
		    etcd_queue_holds(&key, first) ? "holds" : "waits", text);
	}
	return busy ? ENGINE_BUSY : ENGINE_RELEASED;
}

struct etcd_holding {
	struct etcd_lock *lock;
	/* a short command needs no renewal, although a third of the lease may be over, */
	int64_t short_until;
	int64_t watch_at; /* and no watch; later, when the next watch may begin */
	int64_t slow_at;  /* when the server is slow if it has not answered the watch; or NEVER */
	int64_t pause;    /* between two watches: longer after each that was dropped soon */
	struct error refusal; /* of a renewal, since the last that was done */
	bool prolonged;       /* and so its lease is kept, which was said */
};

/* Watch our own key from the revision at which it was last seen: a loss is noticed before the
 * next renewal. */
static void watch_own(struct etcd_holding *holding)
{
	struct etcd_lock *lock = holding->lock;
	struct etcd_span own = {.end = ""};

	holding->watch_at = clock_boottime() + holding->pause;
	holding->slow_at = clock_boottime() + lock->ttl / 12;
	strcpy(own.first, lock->key);
	etcd_watch_start(&lock->watch, &lock->rpc, &own, false, lock->seen + 1);
}

/* The server refuses to renew: it has no room, or the user has lost a right.  Keep the lease, as
 * etcdctl lock does, and say why, once. */
static enum etcd_reply prolong(struct etcd_holding *holding, int64_t until)
{
	struct etcd_lock *lock = holding->lock;
	enum etcd_reply reply;

	holding->refusal = lock->rpc.error;
	reply = etcd_key_prolong(lock, until);
	if (reply == ETCD_OK && !holding->prolonged) {
		say(SAYS_NOTE " the server refuses to renew it, so its lease is kept alive: %s",
		    holding->refusal.text);
		holding->prolonged = true;
	}
	return reply;
}

static enum renewed renew(struct renewal *renewal, int64_t until, struct error *error)
{
	struct etcd_holding *holding = renewal->lock;
	struct etcd_lock *lock = holding->lock;
	int64_t now = clock_boottime();
	int64_t term = lease_moment(renewal->deadline, renewal->lease, LEASE_TERM);
	enum etcd_reply reply;

	if (now < holding->short_until)
		return RENEW_AGAIN;
	until = earlier(until, later(now + lock->ttl / 3, term));
	reply = etcd_key_renew(lock, until);
	if (reply == ETCD_OK)
		holding->prolonged = false;
	if (reply == ETCD_FULL || reply == ETCD_FATAL)
		reply = prolong(holding, until);
	if (reply == ETCD_OK) {
		renewal->lease = lock->lease.ttl;
		renewal->deadline = lock->lease.end;
		holding->refusal.text[0] = '\0';
		return RENEWED;
	}
	if (reply == ETCD_GONE) {
		error_plain(error, ERROR_LOST, "its lease expired or was revoked");
		return RENEW_GONE;
	}
	*error = holding->refusal;
	if (error->text[0] == '\0')
		error_plain(error, ERROR_LOST, "no endpoint answered in time: %s",
		    lock->rpc.error.text);
	return RENEW_AGAIN;
}

/* The watch has no answer yet, which tells of a server that has become slow before a renewal does:
 * renew at once.  Returns the moment to wait for. */
static int64_t look_for_slowness(struct etcd_holding *holding, struct renewal *renewal,
    int64_t until)
{
	struct etcd_lock *lock = holding->lock;

	if (lock->watch.heard)
		holding->slow_at = NEVER;
	if (clock_boottime() < holding->slow_at)
		return earlier(until, holding->slow_at);
	holding->slow_at = NEVER;
	lock->rpc.patience = lock->rpc.timeouts.most;
	renewal->next = clock_boottime();
	return renewal->next;
}

static int rest(struct renewal *renewal, int64_t until, struct error *error)
{
	struct etcd_holding *holding = renewal->lock;
	struct etcd_lock *lock = holding->lock;
	struct etcd_watch *watch = &lock->watch;

	if (!watch->deleted && (etcd_watch_over(watch) || watch->endpoint != lock->rpc.current)) {
		bool cancelled = watch->cancelled;
		int64_t now = clock_boottime();

		if (cancelled && now < holding->watch_at + lock->ttl / 3) {
			holding->pause = earlier(2 * holding->pause, lock->ttl / 3);
			holding->watch_at = now + holding->pause;
		} else if (watch->event || watch->call.transfer.ended)
			holding->pause = PAUSE;
		if (watch->call.transfer.ended && watch->endpoint == lock->rpc.current)
			etcd_rpc_rotate(&lock->rpc);
		etcd_watch_stop(watch);
		/* The server has dropped it, mostly because lock->seen is compacted: look at the
		 * key, for a later revision.  If that is not answered, no renewal waits for it. */
		if (cancelled &&
		    etcd_key_look(lock, lock->revision, earlier(now + lock->ttl / 6, until)) ==
			ETCD_OK &&
		    !lock->place.found)
			watch->deleted = true;
		if (clock_boottime() >= holding->watch_at && !watch->deleted)
			watch_own(holding);
		else
			until = earlier(until, holding->watch_at);
	}
	if (!watch->deleted)
		transfer_wait(look_for_slowness(holding, renewal, until), &watch->event,
		    &watch->call.transfer.ended);
	return watch->deleted ? error_plain(error, ERROR_LOST, "its key was deleted") : 0;
}

static enum engine_outcome etcd_release(struct etcd_lock *lock, struct error *error)
{
	etcd_watch_stop(&lock->watch);
	switch (etcd_key_release(lock, clock_boottime() + lock->ttl)) {
	case ETCD_OK:
		say(SAYS_FREE);
		/* A lease without keys ends by itself, which costs the server less than a revoke at
		 * the end. */
		if (lock->ttl <= LONG_LEASE)
			lock->lease.id = lock->next.id = 0;
		return ENGINE_RELEASED;
	case ETCD_GONE:
		error_plain(error, ERROR_LOST, "the lease had ended before it was released");
		return ENGINE_FAILED;
	default:
		error_plain(error, ERROR_UNAVAILABLE, "%s; the lock is free when its lease ends",
		    lock->rpc.error.text);
		return ENGINE_FAILED;
	}
}

static enum engine_outcome etcd_hold(struct etcd_lock *lock, struct error *error)
{
	int64_t begin = clock_boottime() + PAUSE;
	struct etcd_holding holding = {.lock = lock,
	    .short_until = begin,
	    .watch_at = begin,
	    .slow_at = NEVER,
	    .pause = PAUSE};
	struct renewal renewal = {.lock = &holding,
	    .lease = lock->lease.ttl,
	    .deadline = lock->lease.end,
	    .at = LEASE_RENEW,
	    .retry = PAUSE,
	    .renew = renew,
	    .rest = rest};
	int held;

	etcd_watch_stop(&lock->watch); /* that of our predecessor */
	/* A renewal has a third of the lease, in which a lost answer is to be asked for again. */
	lock->rpc.timeouts.most = lock->ttl / 3;
	lock->rpc.timeouts.most_silent = lock->rpc.timeouts.usual;
	lock->rpc.patience = earlier(lock->rpc.patience, lock->rpc.timeouts.most);
	lock->rpc.abort = &lock->watch.deleted;
	held = renewal_hold(&renewal, lock->token, lock->slot, error);
	lock->rpc.abort = NULL;
	if (held == 0 && lock->watch.deleted)
		held = error_plain(error, ERROR_LOST, "its key was deleted");
	return held == 0 ? etcd_release(lock, error) : ENGINE_FAILED;
}

static enum engine_outcome etcd_take(struct etcd_lock *lock, struct error *error)
{
	enum engine_outcome outcome = etcd_wait(lock, error);

	if (outcome == ENGINE_BUSY)
		say(SAYS_BUSY " %s", lock->place.who);
	if (outcome != ENGINE_TAKEN)
		return outcome;
	outcome = etcd_hold(lock, error);
	etcd_watch_stop(&lock->watch);
	return outcome;
}

/* How long an endpoint may take for an answer, before the next one, or the same, is asked. */
static void set_timeouts(struct etcd_timeouts *timeouts, const struct etcd_lock *lock)
{
	const struct options *options = lock->options;

	timeouts->usual = earlier(lock->ttl / 6, MOST_ENDPOINT_TIMEOUT);
	timeouts->usual = later(timeouts->usual, LEAST_ENDPOINT_TIMEOUT);
	timeouts->first = later(timeouts->usual, FIRST_TIMEOUT);
	if (options->no_wait) { /* a silent endpoint leaves time for the others */
		timeouts->first = earlier(timeouts->first,
		    (options->answer_by - clock_boottime()) / options->url.hosts);
		timeouts->usual = earlier(timeouts->usual, timeouts->first);
		return;
	}
	/* A waiter has the time that a busy server, or a busy machine, takes. */
	if (options->url.hosts == 1)
		timeouts->first = FIRST_ANSWER;
	timeouts->most = timeouts->most_silent = MOST_PATIENCE;
}

static struct etcd_lock the_lock; /* too large for the stack */

static enum engine_outcome etcd_run(const struct options *options, struct error *error)
{
	static bool ran; /* and was not lucky */
	struct etcd_lock *lock = &the_lock;

	/* Most of it is room for a long request, a token, sixteen endpoints: pages that are never
	 * written, and cost no memory as long as no zeros are written either. */
	if (ran) {
		bool connected = lock->rpc.connected;

		memset(lock, 0, sizeof *lock);
		lock->rpc.connected = connected;
	}
	ran = true;
	lock->options = options;
	lock->ttl = options->ttl > 0 ? options->ttl : DEFAULT_TTL;
	lock->slot = -1;
	if (options->stale_given) {
		error_plain(error, ERROR_USAGE,
		    "--stale is not for etcd: leases (--ttl) end by themselves");
		return ENGINE_FAILED;
	}
	snprintf(lock->name, sizeof lock->name, "%s", options->url.path);
	etcd_queue_init(&lock->queue, lock->name, lock->options);
	set_timeouts(&lock->rpc.timeouts, lock);
	if (etcd_rpc_open(&lock->rpc, &options->url,
		earlier(clock_boottime() + FIRST_ANSWER, options->answer_by)) != ETCD_OK) {
		*error = lock->rpc.error;
		return ENGINE_FAILED;
	}
	if (options->action == ACTION_WHO)
		return etcd_who(lock, error);
	return etcd_take(lock, error);
}

static void etcd_end(bool stopped)
{
	struct etcd_lock *lock = &the_lock;

	lock->rpc.abort = NULL;
	etcd_watch_stop(&lock->watch);
	/* here, behind the answer to semlock, which a silent server must not delay */
	if (lock->token == 0)
		etcd_key_revoke(lock,
		    clock_boottime() + (protocol_released() ? lock->ttl / 3 : SECOND));
	else if (stopped)
		etcd_key_release(lock, clock_boottime() + lock->ttl);
	etcd_rpc_close(&lock->rpc);
}

const struct engine engine = {
    .name = "etcd",
    .schemes = "etcd etcds",
    .words = "shared slots order token queue-max",
    .parse = etcd_parse,
    .run = etcd_run,
    .end = etcd_end,
};
