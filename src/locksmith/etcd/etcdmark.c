#include <config.h>

#include "locksmith/etcd/etcdmark.h"

#include "locksmith/common/clock.h"

#include <stdio.h>
#include <string.h>

#define LONGEST_GRANT ((size_t)64 * 1024)

static void put_mark(const struct etcdlock *k, struct pb_out *m)
{
	txn_put(m, TXN_SUCCESS, &(struct txn_put){k->mark, k->value, k->mark_lease});
}

static enum etcd_reply transact(struct etcdlock *k, struct pb_out *request, int64_t until, struct pb *answer,
    bool *succeeded)
{
	enum etcd_reply reply = etcdrpc_call(&k->etcd, ETCD_TXN, request, until, answer);

	*succeeded = reply == ETCD_OK && txn_succeeded(*answer);
	return reply;
}

enum etcd_reply etcdmark_lease(struct etcdlock *k, int64_t until)
{
	int64_t seconds = k->ttl / NS_PER_S, sent = clock_boottime();
	enum etcd_reply reply = etcdlock_lease(k, &seconds, &k->mark_lease, until);

	if (reply == ETCD_OK)
		k->mark_deadline = sent + k->ttl;
	return reply;
}

void etcdmark_lease_start(struct etcdlock *k)
{
	struct pb_out request;

	k->mark_lease = 0;
	k->mark_deadline = clock_boottime() + k->ttl;
	etcdlock_ask_lease(&request, (k->ttl + NS_PER_S - 1) / NS_PER_S);
	if (grpc_open(&k->grant, LONGEST_GRANT) != 0)
		return;
	etcdrpc_prepare(&k->etcd, &k->grant, ETCD_GRANT, &request);
	grpc_start(&k->grant);
}

void etcdmark_lease_take(struct etcdlock *k, int64_t until)
{
	int64_t seconds = k->ttl / NS_PER_S;
	struct pb answer;

	if (k->grant.transfer.running)
		transfer_wait(until, &k->grant.transfer.ended, NULL);
	if (grpc_answer(&k->grant, &answer))
		etcdlock_granted(answer, &seconds, &k->mark_lease);
	if (k->mark_lease == 0)
		k->mark_deadline = 0;
	grpc_close(&k->grant);
}

static void name_slot(struct etcdlock *k)
{
	snprintf(k->mark, sizeof k->mark, "%s#held/#slots/%u", k->name, k->place.slot);
	k->slot = (int)k->place.slot;
}

static void enter_request(const struct etcdlock *k, struct pb_out *m)
{
	pb_start(m);
	txn_made_at(m, k->key, k->revision);
	txn_made_at(m, k->mark, 0);
	if (k->place.blocked)
		etcdqueue_free(&k->queue, m, k->revision);
	/* The put wakes the next waiter for a slot, which is the first in the queue now. */
	if (k->options->mode == LEASE_SLOTS)
		txn_put(m, TXN_SUCCESS, &(struct txn_put){k->key, k->value, k->lease});
	put_mark(k, m);
	txn_get(m, TXN_FAILURE, k->mark);
	txn_get(m, TXN_FAILURE, k->key);
}

enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until)
{
	struct etcd_kv key = {.made = 0}, mark = {.made = 0};
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;
	bool done;

	if (k->options->mode == LEASE_SLOTS)
		name_slot(k);
	enter_request(k, &request);
	reply = transact(k, &request, until, &answer, &done);
	if (reply != ETCD_OK)
		return reply;
	if (!done) {
		txn_first(answer, 0, &mark);
		txn_first(answer, 1, &key);
	}
	k->seen = txn_revision(answer);
	/* After a lost reply the mark may be there already. */
	k->marked = done || mark.lease == k->mark_lease;
	k->mark_made = done ? k->seen : mark.made;
	if (k->marked)
		k->deadline = clock_min(k->deadline, k->mark_deadline);
	k->place.found = done || key.made == k->revision;
	if (!k->marked && k->place.found) /* a separate look: the first transaction mostly succeeds, with a shorter answer */
		reply = etcdlock_look(k, k->revision, until);
	return reply != ETCD_OK || k->place.found ? reply : ETCD_GONE;
}

enum etcd_reply etcdmark_renew(struct etcdlock *k, int64_t until)
{
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply = etcdmark_lease(k, until);
	bool done;

	if (reply != ETCD_OK)
		return reply;
	/* The lease before, with nothing under it, ends by itself. */
	pb_start(&request);
	txn_made_at(&request, k->key, k->revision);
	txn_made_at(&request, k->mark, k->mark_made);
	put_mark(k, &request);
	reply = transact(k, &request, until, &answer, &done);
	if (reply != ETCD_OK)
		return reply;
	k->seen = txn_revision(answer);
	return done ? ETCD_OK : ETCD_GONE;
}

enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until)
{
	struct pb_out request;
	struct pb answer;
	struct etcd_kv mark;
	enum etcd_reply reply;
	bool done;

	pb_start(&request);
	txn_made_at(&request, k->key, k->revision);
	txn_delete(&request, TXN_SUCCESS, k->key);
	txn_delete(&request, TXN_SUCCESS, k->mark);
	txn_get(&request, TXN_FAILURE, k->mark);
	reply = transact(k, &request, until, &answer, &done);
	if (reply != ETCD_OK)
		return reply;
	txn_first(answer, 0, &mark);
	/* If the mark is gone as well, an earlier request, whose reply was lost, has removed both; libcurl
	   also repeats a request when a connection ends. No other process removes the mark before our
	   deadline. */
	if (!done && (mark.made == k->mark_made || (k->etcd.sent == 1 && clock_boottime() >= k->deadline)))
		return ETCD_GONE;
	k->marked = false;
	return ETCD_OK;
}

enum etcd_reply etcdmark_remove(struct etcdlock *k, int64_t until)
{
	struct pb_out request;
	struct pb answer;
	enum etcd_reply reply;
	bool done;

	/* The slot number may be another holder's by now. */
	pb_start(&request);
	txn_made_at(&request, k->mark, k->mark_made);
	txn_delete(&request, TXN_SUCCESS, k->key);
	txn_delete(&request, TXN_SUCCESS, k->mark);
	txn_delete(&request, TXN_FAILURE, k->key);
	reply = transact(k, &request, until, &answer, &done);
	if (reply == ETCD_OK)
		k->marked = false;
	return reply;
}
