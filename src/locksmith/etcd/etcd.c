/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/etcd/etcd_key.h"
#include "locksmith/etcd/etcd_wait.h"

#define LEAST_ENDPOINT_TIMEOUT (300 * MILLISECOND)
/* even with a long lease, go on soon to the next endpoint */
#define MOST_ENDPOINT_TIMEOUT (5 * SECOND)
/* the first answer may take longer, because there is no lease yet that could end */
#define FIRST_TIMEOUT (5 * SECOND / 2)
#define FIRST_ANSWER (10 * SECOND)
#define MOST_PATIENCE (30 * SECOND)
#define PAUSE (SECOND / 5)
#define LONG_LEASE (60 * SECOND) /* when the lock is released, longer leases are revoked */
#define LONGEST_URL 6000

/* Copy the hosts of LIST, "http://a:1,http://b:1", into HOSTS, and set *TLS if they have https://.
 * Returns 0, or -1: no room, a path, or https:// for only some of them. */
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

/* Like url_parse(), but etcd:///NAME takes its hosts from ETCDCTL_ENDPOINTS, or 127.0.0.1:2379. */
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
		    "ETCDCTL_ENDPOINTS must be [http://]HOST:PORT,..., or https:// for all");
	if (strlen(text) >= sizeof whole - sizeof hosts - 10)
		return error_plain(error, ERROR_USAGE, "the URL is too long");
	snprintf(whole, sizeof whole, "%s%.*s%s%s", tls ? "etcds://" : "",
	    (int)(tls ? path - from : path - text), tls ? from : text, hosts, path);
	return url_parse(whole, password_goes, url, error);
}

static struct etcd_lock the_lock; /* too large for the stack */

static enum renewed lost(struct error *error, const char *reason)
{
	error_plain(error, ERROR_LOST, "%s", reason);
	the_lock.token = 0;
	return RENEW_GONE;
}

static struct {
	/* do not renew before this moment, even if a third of the lease is over: a command that
	 * ends before needs no renewal */
	int64_t short_until;
	int64_t watch_at; /* do not start a watch before this moment */
	/* if the watch has no answer by this moment, the server is slow; NEVER: no check */
	int64_t slow_at;
	int64_t pause; /* between two watches; longer after each that the server soon cancelled */
	struct error refusal; /* why the renewals since the last successful one failed */
	bool prolonged;       /* semlock was told that the server only keeps the lease alive */
} holding;

/* Watch our own key from the revision after our last look or put, to notice before the next renewal
 * if the key is lost. */
static void watch_own(struct etcd_lock *lock)
{
	struct etcd_span own = {.end = ""};

	holding.watch_at = clock_boottime() + holding.pause;
	holding.slow_at = clock_boottime() + lock->ttl / 12;
	strcpy(own.first, lock->key);
	etcd_watch_start(&lock->watch, &lock->rpc, &own, false, lock->seen + 1);
}

/* The server refuses to renew: it is out of space, or the user has lost a permission.  Keep the
 * present lease alive, as etcdctl lock does, and report the reason once. */
static enum etcd_reply prolong(struct etcd_lock *lock, int64_t until)
{
	enum etcd_reply reply;

	holding.refusal = lock->rpc.error;
	reply = etcd_key_prolong(lock, until);
	if (reply == ETCD_OK && !holding.prolonged) {
		say(SAYS_NOTE " the server refuses to renew it, so its lease is kept alive: %s",
		    holding.refusal.text);
		holding.prolonged = true;
	}
	return reply;
}

static enum renewed renew(struct turn *turn, int64_t until, struct error *error)
{
	struct etcd_lock *lock = &the_lock;
	int64_t now = clock_boottime();
	int64_t term = lease_moment(turn->deadline, turn->lease, LEASE_TERM);
	enum etcd_reply reply = ETCD_GONE;

	if (now < holding.short_until)
		return RENEW_AGAIN;
	if (lock->watch.deleted)
		return lost(error, "its key was deleted");
	until = earlier(until, later(now + lock->ttl / 3, term));
	reply = etcd_key_renew(lock, until);
	if (reply == ETCD_OK)
		holding.prolonged = false;
	if (reply == ETCD_FULL || reply == ETCD_FATAL)
		reply = prolong(lock, until);
	if (reply == ETCD_OK) {
		turn->lease = lock->lease.ttl;
		turn->deadline = lock->lease.end;
		holding.refusal.text[0] = '\0';
		return RENEWED;
	}
	if (lock->watch.deleted)
		return lost(error, "its key was deleted");
	if (reply == ETCD_GONE)
		return lost(error, "its lease expired or was revoked");
	*error = holding.refusal;
	if (error->text[0] == '\0')
		error_plain(error, ERROR_LOST, "no endpoint answered in time: %s",
		    lock->rpc.error.text);
	return RENEW_AGAIN;
}

/* If the server has not answered the watch by holding.slow_at, the server has become slow.  Renew
 * at once: at the usual time, less of the lease would be left.  Returns the moment until which to
 * wait. */
static int64_t look_for_slowness(struct etcd_lock *lock, struct turn *turn, int64_t until)
{
	if (lock->watch.heard)
		holding.slow_at = NEVER;
	if (clock_boottime() < holding.slow_at)
		return earlier(until, holding.slow_at);
	holding.slow_at = NEVER;
	lock->rpc.patience = lock->rpc.timeouts.most;
	turn->at = 0;
	return clock_boottime();
}

static void rest(struct turn *turn, int64_t until)
{
	struct etcd_lock *lock = &the_lock;
	struct etcd_watch *watch = &lock->watch;

	if (lock->token == 0) {
		etcd_wait_rest(lock, turn, until);
		return;
	}
	if (!watch->deleted && (etcd_watch_over(watch) || watch->endpoint != lock->rpc.current)) {
		bool cancelled = watch->cancelled;
		int64_t now = clock_boottime();

		if (cancelled && now < holding.watch_at + lock->ttl / 3) {
			holding.pause = earlier(2 * holding.pause, lock->ttl / 3);
			holding.watch_at = now + holding.pause;
		} else if (watch->event || watch->call.transfer.ended)
			holding.pause = PAUSE;
		if (watch->call.transfer.ended && watch->endpoint == lock->rpc.current)
			etcd_rpc_rotate(&lock->rpc);
		etcd_watch_stop(watch);
		/* The server has dropped the watch, usually because it has compacted the revision
		 * lock->seen.  Look at the key, which sets lock->seen to a later revision.  Give
		 * the look up before a renewal is due. */
		if (cancelled &&
		    etcd_key_look(lock, lock->revision, earlier(now + lock->ttl / 6, until)) ==
			ETCD_OK &&
		    !lock->place.found)
			watch->deleted = true;
		if (clock_boottime() >= holding.watch_at && !watch->deleted)
			watch_own(lock);
		else
			until = earlier(until, holding.watch_at);
	}
	if (!watch->deleted)
		transfer_wait(look_for_slowness(lock, turn, until), &watch->event,
		    &watch->call.transfer.ended);
	if (watch->deleted)
		turn->at = 0;
}

/* Remove the lock's key, or leave the queue. */
static enum freed release(struct turn *turn, int64_t until, struct error *error)
{
	struct etcd_lock *lock = &the_lock;
	bool held = lock->token != 0, deleted = held && lock->watch.deleted;

	lock->rpc.abort = NULL;
	etcd_watch_stop(&lock->watch);
	if (!held) {
		etcd_key_revoke(lock, until);
		return FREED;
	}
	if (deleted) {
		lost(error, "its key was deleted");
		return FREE_GONE;
	}
	switch (etcd_key_release(lock, until)) {
	case ETCD_OK:
		/* forget the lease instead of revoking it: it has no keys any more, and its end
		 * costs the server less than a revoke */
		if (lock->ttl <= LONG_LEASE)
			lock->lease.id = lock->next.id = 0;
		return FREED;
	case ETCD_GONE:
		/* libcurl may have sent the request twice, because a connection ended, and the
		 * first may have removed the key */
		turn->unsure = true;
		lost(error, "its lease had ended before it was released");
		return FREE_GONE;
	default:
		*error = lock->rpc.error;
		return FREE_AGAIN;
	}
}

/* How long to wait for an endpoint's answer before we ask the next one, or the same one again. */
static void set_timeouts(struct etcd_timeouts *timeouts, const struct etcd_lock *lock)
{
	const struct options *options = lock->options;

	timeouts->usual = earlier(lock->ttl / 6, MOST_ENDPOINT_TIMEOUT);
	timeouts->usual = later(timeouts->usual, LEAST_ENDPOINT_TIMEOUT);
	timeouts->first = later(timeouts->usual, FIRST_TIMEOUT);
	if (options->no_wait) { /* a silent endpoint must leave time for the others */
		timeouts->first = earlier(timeouts->first,
		    (options->answer_by - clock_boottime()) / options->url.hosts);
		timeouts->usual = earlier(timeouts->usual, timeouts->first);
		return;
	}
	/* a waiter gives a busy server, or a busy machine, the time it needs */
	if (options->url.hosts == 1)
		timeouts->first = FIRST_ANSWER;
	timeouts->most = timeouts->most_silent = MOST_PATIENCE;
}

static int prepare(struct options *options, struct error *error)
{
	the_lock.options = options;
	return etcd_parse(options->url_text, &options->url, error);
}

static enum etcd_reply connect_first(struct etcd_lock *lock)
{
	const struct options *options = lock->options;

	lock->ttl = options->ttl > 0 ? options->ttl : engine.ttl;
	lock->slot = -1;
	snprintf(lock->name, sizeof lock->name, "%s", options->url.path);
	etcd_queue_init(&lock->queue, lock->name, options);
	set_timeouts(&lock->rpc.timeouts, lock);
	return etcd_rpc_open(&lock->rpc, &options->url,
	    earlier(clock_boottime() + FIRST_ANSWER, options->answer_by));
}

/* Zero LOCK for another try to connect.  The first try needs no zeroing.  Most of struct etcd_lock
 * is room for a long request, a token and sixteen endpoints: pages that are never written cost no
 * memory. */
static void forget_connection(struct etcd_lock *lock)
{
	const struct options *options = lock->options;
	bool connected = lock->rpc.connected;

	etcd_rpc_close(&lock->rpc);
	memset(lock, 0, sizeof *lock);
	lock->rpc.connected = connected;
	lock->options = options;
}

static void begin_to_hold(struct etcd_lock *lock, struct turn *turn)
{
	turn->lease = lock->lease.ttl;
	turn->deadline = lock->lease.end;
	turn->token = lock->token;
	turn->slot = lock->slot;
	etcd_watch_stop(&lock->watch); /* it watched for our turn */
	/* A slow answer to a renewal may take a third of the lease; but after a missing answer, a
	 * second try must fit into that third. */
	lock->rpc.timeouts.most = lock->ttl / 3;
	lock->rpc.timeouts.most_silent = lock->rpc.timeouts.usual;
	lock->rpc.patience = earlier(lock->rpc.patience, lock->rpc.timeouts.most);
	lock->rpc.abort = &lock->watch.deleted;
	holding.watch_at = clock_boottime() + PAUSE;
	/* If the lock came late, the common part renews it at once: do not forbid that. */
	if (clock_boottime() < lease_moment(turn->deadline, turn->lease, LEASE_ENTER))
		holding.short_until = holding.watch_at;
	holding.slow_at = NEVER;
	holding.pause = PAUSE;
}

/* The answer that granted the lock came late, and our key was gone before we could renew the lock:
 * go on waiting. */
static void stop_holding(struct etcd_lock *lock)
{
	lock->rpc.abort = NULL;
	set_timeouts(&lock->rpc.timeouts, lock);
}

static enum look look(struct turn *turn, struct error *error)
{
	static bool ran, connected;
	struct etcd_lock *lock = &the_lock;
	enum look look;

	if (ran && !connected)
		forget_connection(lock);
	ran = true;
	if (!connected && connect_first(lock) != ETCD_OK) {
		*error = lock->rpc.error;
		return LOOK_FAILED;
	}
	connected = true;
	if (lock->rpc.abort != NULL && lock->token == 0)
		stop_holding(lock);
	look = etcd_wait_look(lock, turn, error);
	if (look == LOOK_TAKEN)
		begin_to_hold(lock, turn);
	return look;
}

static enum look who(struct turn *turn, struct error *error)
{
	struct etcd_lock *lock = &the_lock;
	struct etcd_key key;
	struct protobuf keys;
	bool busy = false;

	(void)turn;
	if (connect_first(lock) != ETCD_OK ||
	    etcd_key_all(lock, clock_boottime() + FIRST_ANSWER, &keys) != ETCD_OK) {
		*error = lock->rpc.error;
		return LOOK_FAILED;
	}
	for (bool first = true; etcd_wire_next(&keys, &key); first = false) {
		char text[600];

		busy = true;
		/* Skip the key of a slot's number, because the holder's own key is listed.  If
		 * another program put the number, list it. */
		if (etcd_queue_is_number(&lock->queue, &key) && etcd_queue_holds(&key, false))
			continue;
		etcd_queue_describe(&key, text, sizeof text);
		say(SAYS_WHO " " FIELD_STATE "%s %s",
		    etcd_queue_holds(&key, first) ? "holds" : "waits", text);
	}
	return busy ? LOOK_BUSY : LOOK_FREE;
}

static void hang_up(void)
{
	etcd_watch_stop(&the_lock.watch);
	etcd_rpc_close(&the_lock.rpc);
}

const struct engine engine = {
    .name = "etcd",
    .schemes = "etcd etcds",
    .words = "shared slots order token queue-max",
    .ttl = 15 * SECOND,
    .beat = LEASE_RENEW,
    .prepare = prepare,
    .look = look,
    .rest = rest,
    .renew = renew,
    .release = release,
    .who = who,
    .hang_up = hang_up,
};
