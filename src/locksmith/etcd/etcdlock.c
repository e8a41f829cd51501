#include <config.h>

#include "locksmith/etcd/etcdlock.h"

#include "locksmith/common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum lease_field { GRANT_SECONDS = 1, GRANTED_ID = 2, GRANTED_SECONDS = 3, LEASE_ID = 1, KEPT_SECONDS = 3 };

void etcdlock_ask_lease(struct pb_out *request, int64_t seconds)
{
	pb_start(request);
	pb_int(request, GRANT_SECONDS, seconds);
}

bool etcdlock_granted(struct pb answer, int64_t *seconds, int64_t *id)
{
	int64_t asked = *seconds;

	*id = pb_number(answer, GRANTED_ID);
	/* The server may give more than was asked for. */
	*seconds = pb_number(answer, GRANTED_SECONDS);
	if (*seconds < asked || *seconds > LONGEST_SECONDS)
		*id = 0;
	return *id != 0;
}

enum etcd_reply etcdlock_lease(struct etcdlock *k, int64_t *seconds, int64_t *id, int64_t until)
{
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;

	etcdlock_ask_lease(&request, *seconds);
	reply = etcdrpc_call(&k->etcd, ETCD_GRANT, &request, until, &answer);
	if (reply != ETCD_OK || etcdlock_granted(answer, seconds, id))
		return reply;
	failure_set(&k->etcd.failure, EXIT_UNAVAILABLE, "the server granted no lease");
	return ETCD_FATAL;
}

enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until)
{
	int64_t seconds = (k->ttl + NS_PER_S - 1) / NS_PER_S, sent = clock_boottime();
	const char *part = k->options->mode == LEASE_SHARED  ? "#shared/"
			   : k->options->mode == LEASE_SLOTS ? "#slots/"
							    : "";
	enum etcd_reply reply;

	k->revision = 0;
	k->slot = -1;
	reply = etcdlock_lease(k, &seconds, &k->lease, until);
	if (reply != ETCD_OK)
		return reply;
	k->ttl = seconds * NS_PER_S;
	/* If a reply was lost the request was repeated: the lease may begin at any of them; count from
	 * the first. */
	k->deadline = sent + k->ttl;
	snprintf(k->key, sizeof k->key, "%s/%s%016" PRIx64, k->name, part, (uint64_t)k->lease);
	snprintf(k->mark, sizeof k->mark, "%s#held/%s%016" PRIx64, k->name, part, (uint64_t)k->lease);
	etcdqueue_value(k->options, k->value, sizeof k->value);
	return ETCD_OK;
}

enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until)
{
	int64_t sent = clock_boottime(), seconds;
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;

	pb_start(&request);
	pb_int(&request, LEASE_ID, k->lease);
	reply = etcdrpc_call(&k->etcd, ETCD_KEEPALIVE, &request, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	/* The reply about an ended lease has no TTL. */
	seconds = pb_number(answer, KEPT_SECONDS);
	if (seconds <= 0)
		return ETCD_GONE;
	k->deadline = sent + (seconds < k->ttl / NS_PER_S ? seconds * NS_PER_S : k->ttl);
	return ETCD_OK;
}

enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until)
{
	struct pb_out request;
	struct pb answer;
	struct etcd_kv own;
	enum etcd_reply reply;
	size_t questions;

	pb_start(&request);
	questions = etcdqueue_ask(&k->queue, &request, TXN_SUCCESS, revision);
	if (revision != INT64_MAX)
		txn_range(&request, TXN_SUCCESS, &(struct txn_range){.key = k->key, .keys_only = true});
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, &request, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	k->place.found = txn_first(answer, questions, &own) && k->revision > 0 && own.made == k->revision;
	k->seen = txn_revision(answer);
	etcdqueue_place(&k->queue, answer, &k->place);
	return ETCD_OK;
}

static void put_key(const struct etcdlock *k, struct pb_out *m, enum txn_branch branch)
{
	txn_put(m, branch, &(struct txn_put){k->key, k->value, k->lease});
}

/* The look comes before the put: the keys that it finds are before ours. */
static void look_and_put(const struct etcdlock *k, struct pb_out *m, enum txn_branch branch)
{
	etcdqueue_ask(&k->queue, m, branch, INT64_MAX);
	put_key(k, m, branch);
}

/* If the lock is free: key and mark at once. A slot has no number before the look. */
static void enter_or_queue(const struct etcdlock *k, struct pb_out *m)
{
	struct txn_opened inner;

	if (k->mark_lease == 0 || k->options->mode == LEASE_SLOTS) {
		look_and_put(k, m, TXN_SUCCESS);
		return;
	}
	inner = txn_open(m, TXN_SUCCESS);
	etcdqueue_free(&k->queue, m, INT64_MAX);
	put_key(k, m, TXN_SUCCESS);
	txn_put(m, TXN_SUCCESS, &(struct txn_put){k->mark, k->value, k->mark_lease});
	look_and_put(k, m, TXN_FAILURE);
	txn_close(m, inner);
}

static void note_marked(struct etcdlock *k, int64_t revision)
{
	k->marked = true;
	k->mark_made = revision;
	k->deadline = clock_min(k->deadline, k->mark_deadline);
}

/* The answer to enter_or_queue. */
static void note_queued(struct etcdlock *k, struct pb answer)
{
	struct pb inner = txn_inner(answer, 0);

	k->revision = k->seen = txn_revision(answer);
	k->place = (struct etcdqueue_place){.found = true};
	if (txn_succeeded(inner))
		note_marked(k, k->revision);
	else
		etcdqueue_place(&k->queue, inner.at != NULL ? inner : answer, &k->place);
}

/* Our key is there if the reply to an earlier request was lost; the mark is with it, or was not made. */
static enum etcd_reply note_not_queued(struct etcdlock *k, struct pb answer, int64_t until)
{
	struct etcd_kv key, mark;

	txn_first(answer, 0, &key);
	txn_first(answer, 1, &mark);
	k->revision = key.made;
	if (k->revision > 0 && k->mark_lease != 0 && mark.lease == k->mark_lease)
		note_marked(k, mark.made);
	return k->revision > 0 ? etcdlock_look(k, k->revision, until) : ETCD_OK;
}

enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made)
{
	const struct etcdqueue_span *all = &k->queue.keys.all;
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;

	pb_start(&request);
	if (unless_newer >= 0)
		txn_condition(&request, &(struct txn_condition){.key = all->first, .end = all->end, .what = TXN_PUT,
		    .result = TXN_LESS, .revision = unless_newer + 1});
	else
		txn_made_at(&request, k->key, 0);
	enter_or_queue(k, &request);
	txn_get(&request, TXN_FAILURE, k->key);
	txn_get(&request, TXN_FAILURE, k->mark);
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, &request, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	if (txn_succeeded(answer))
		note_queued(k, answer);
	else
		reply = note_not_queued(k, answer, until);
	*made = k->revision > 0;
	return reply;
}

static void ask_all(struct pb_out *m, const struct etcdqueue_span *s)
{
	txn_range(m, TXN_SUCCESS, &(struct txn_range){.key = s->first, .end = s->end, .order = TXN_OLDEST_FIRST});
}

enum etcd_reply etcdlock_range(struct etcdlock *k, int64_t until, struct pb *kvs, struct pb *marks)
{
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;

	pb_start(&request);
	ask_all(&request, &k->queue.keys.all);
	ask_all(&request, &k->queue.marks.all);
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, &request, until, &answer);
	*kvs = txn_kvs(answer, 0);
	*marks = txn_kvs(answer, 1);
	return reply;
}

enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t *lease, int64_t until)
{
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;

	if (*lease == 0)
		return ETCD_OK;
	pb_start(&request);
	pb_int(&request, LEASE_ID, *lease);
	reply = etcdrpc_call(&k->etcd, ETCD_REVOKE, &request, until, &answer);
	if (reply == ETCD_GONE && k->etcd.sent > 1)
		reply = ETCD_OK; /* an earlier request, whose reply was lost, has done it */
	if (reply == ETCD_OK)
		*lease = 0;
	return reply;
}
