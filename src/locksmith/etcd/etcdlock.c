/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcdlock.h"

#include "locksmith/common/clock.h"

#include <stdio.h>

enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until)
{
	struct pb_out *request = etcdrpc_begin(&k->etcd);
	struct etcd_kv own;
	enum etcd_reply reply;
	size_t questions;

	questions = etcdqueue_ask(&k->queue, request, TXN_SUCCESS, revision);
	if (revision != INT64_MAX)
		txn_range(request, TXN_SUCCESS, &(struct txn_range){.key = k->key, .keys_only = true});
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	k->place.found = txn_first(k->etcd.answer, questions, &own) && k->revision > 0 &&
			 own.made == k->revision;
	k->seen = txn_revision(k->etcd.answer);
	etcdqueue_place(&k->queue, k->etcd.answer, &k->place);
	return ETCD_OK;
}

static void put_key(const struct etcdlock *k, struct pb_out *m, enum txn_branch branch)
{
	txn_put(m, branch, k->key, k->value, k->lease);
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
	txn_put(m, TXN_SUCCESS, k->mark, k->value, k->mark_lease);
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
static void note_queued(struct etcdlock *k)
{
	struct pb answer = k->etcd.answer, inner = txn_inner(answer, 0);

	k->revision = k->seen = txn_revision(answer);
	k->place = (struct etcdqueue_place){.found = true};
	if (txn_succeeded(inner))
		note_marked(k, k->revision);
	else
		etcdqueue_place(&k->queue, inner.at != NULL ? inner : answer, &k->place);
}

/* Our key, and our mark, are there if the reply to an earlier request was lost. Returns the key's revision. */
static int64_t note_found(struct etcdlock *k)
{
	struct etcd_kv key, mark;

	txn_first(k->etcd.answer, 0, &key);
	txn_first(k->etcd.answer, 1, &mark);
	if (k->mark_lease != 0 && mark.lease == k->mark_lease)
		note_marked(k, mark.made);
	return key.made;
}

enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made)
{
	const struct etcdqueue_span *all = &k->queue.keys.all;
	struct pb_out *request = etcdrpc_begin(&k->etcd);
	enum etcd_reply reply;
	bool done;

	if (unless_newer >= 0)
		txn_condition(request, &(struct txn_condition){.key = all->first, .end = all->end, .what = TXN_PUT,
		    .result = TXN_LESS, .revision = unless_newer + 1});
	else
		txn_made_at(request, k->key, 0);
	enter_or_queue(k, request);
	txn_get(request, TXN_FAILURE, k->key);
	txn_get(request, TXN_FAILURE, k->mark);
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	done = txn_succeeded(k->etcd.answer);
	if (done)
		note_queued(k);
	else
		k->revision = note_found(k);
	*made = k->revision > 0;
	return done || !*made ? ETCD_OK : etcdlock_look(k, k->revision, until);
}

static void ask_all(struct pb_out *m, const struct etcdqueue_span *s)
{
	txn_range(m, TXN_SUCCESS, &(struct txn_range){.key = s->first, .end = s->end, .order = TXN_OLDEST_FIRST});
}

enum etcd_reply etcdlock_range(struct etcdlock *k, int64_t until, struct pb *kvs, struct pb *marks)
{
	struct pb_out *request = etcdrpc_begin(&k->etcd);
	enum etcd_reply reply;

	ask_all(request, &k->queue.keys.all);
	ask_all(request, &k->queue.marks.all);
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, until);
	*kvs = txn_kvs(k->etcd.answer, 0);
	*marks = txn_kvs(k->etcd.answer, 1);
	return reply;
}

static void enter_request(const struct etcdlock *k, struct pb_out *m)
{
	txn_made_at(m, k->key, k->revision);
	txn_made_at(m, k->mark, 0);
	if (k->place.blocked)
		etcdqueue_free(&k->queue, m, k->revision);
	/* The put wakes the next waiter for a slot, which is the first in the queue now. */
	if (k->options->mode == LEASE_SLOTS)
		put_key(k, m, TXN_SUCCESS);
	txn_put(m, TXN_SUCCESS, k->mark, k->value, k->mark_lease);
	txn_get(m, TXN_FAILURE, k->key);
	txn_get(m, TXN_FAILURE, k->mark);
}

enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until)
{
	enum etcd_reply reply;
	bool done;

	if (k->options->mode == LEASE_SLOTS) {
		snprintf(k->mark, sizeof k->mark, "%s#held/#slots/%u", k->name, k->place.slot);
		k->slot = (int)k->place.slot;
	}
	enter_request(k, etcdrpc_begin(&k->etcd));
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	k->seen = txn_revision(k->etcd.answer);
	done = txn_succeeded(k->etcd.answer);
	k->place.found = done || note_found(k) == k->revision;
	if (done)
		note_marked(k, k->seen);
	if (!k->place.found)
		return ETCD_GONE;
	/* A separate look: the first transaction mostly succeeds, with a shorter answer. */
	return k->marked ? ETCD_OK : etcdlock_look(k, k->revision, until);
}

enum etcd_reply etcdmark_renew(struct etcdlock *k, int64_t until)
{
	enum etcd_reply reply = etcdmark_lease(k, until);
	struct pb_out *request;

	if (reply != ETCD_OK)
		return reply;
	/* The lease before, with nothing under it, ends by itself. */
	request = etcdrpc_begin(&k->etcd);
	txn_made_at(request, k->key, k->revision);
	txn_made_at(request, k->mark, k->mark_made);
	txn_put(request, TXN_SUCCESS, k->mark, k->value, k->mark_lease);
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	k->seen = txn_revision(k->etcd.answer);
	return txn_succeeded(k->etcd.answer) ? ETCD_OK : ETCD_GONE;
}

enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until)
{
	struct pb_out *request = etcdrpc_begin(&k->etcd);
	struct etcd_kv mark;
	enum etcd_reply reply;

	txn_made_at(request, k->key, k->revision);
	txn_delete(request, TXN_SUCCESS, k->key);
	txn_delete(request, TXN_SUCCESS, k->mark);
	txn_get(request, TXN_FAILURE, k->mark);
	reply = etcdrpc_call(&k->etcd, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	txn_first(k->etcd.answer, 0, &mark);
	/* If the mark is gone as well, an earlier request, whose reply was lost, has removed both; libcurl
	   also repeats a request when a connection ends. No other process removes the mark before our
	   deadline. */
	if (!txn_succeeded(k->etcd.answer) &&
	    (mark.made == k->mark_made || (k->etcd.sent == 1 && clock_boottime() >= k->deadline)))
		return ETCD_GONE;
	k->marked = false;
	return ETCD_OK;
}

void etcdmark_remove(struct etcdlock *k, int64_t until)
{
	struct pb_out *request = etcdrpc_begin(&k->etcd);

	/* The slot number may be another holder's by now. */
	txn_made_at(request, k->mark, k->mark_made);
	txn_delete(request, TXN_SUCCESS, k->key);
	txn_delete(request, TXN_SUCCESS, k->mark);
	txn_delete(request, TXN_FAILURE, k->key);
	etcdrpc_call(&k->etcd, ETCD_TXN, until);
}
