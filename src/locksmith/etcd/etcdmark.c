#include <config.h>

#include "locksmith/etcd/etcdmark.h"

#include "locksmith/common/clock.h"

#include <stdio.h>
#include <string.h>

#define LONGEST_GRANT ((size_t)64 * 1024)

/* The condition that KEY was made at that revision; 0: that there is no KEY. */
static json_t *made_at(const char *key, int64_t revision)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "key", key, "target", "CREATE", "result", "EQUAL",
	    "create_revision", etcdlock_number(revision));
}

static json_t *get_request(const char *key)
{
	return json_pack("{s:{s:s}}", "request_range", "key", key);
}

static json_t *delete_request(const char *key)
{
	return json_pack("{s:{s:s}}", "request_delete_range", "key", key);
}

static json_t *put_request(const struct etcdlock *k, const char *key, int64_t lease)
{
	return json_pack("{s:{s:s, s:s, s:o}}", "request_put", "key", key, "value", k->value,
	    "lease", etcdlock_number(lease));
}

/* A field of the first key in the i-th response of a transaction; 0 if there is none. */
static int64_t response_int(const json_t *answer, size_t i, const char *field)
{
	const json_t *kvs = etcdqueue_kvs(json_object_get(answer, "responses"), i);

	return etcdqueue_int(json_array_get(kvs, 0), field);
}

static enum etcd_reply transact(struct etcdlock *k, json_t *body, int64_t until, json_t **answer,
    bool *succeeded)
{
	enum etcd_reply reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, answer);

	*succeeded = reply == ETCD_OK && json_is_true(json_object_get(*answer, "succeeded"));
	return reply;
}

enum etcd_reply etcdmark_lease(struct etcdlock *k, int64_t until)
{
	int64_t seconds = k->ttl / NS_PER_S, sent = boottime_now();
	enum etcd_reply reply = etcdlock_lease(k, &seconds, &k->mark_lease, until);

	if (reply == ETCD_OK)
		k->mark_deadline = sent + k->ttl;
	return reply;
}

void etcdmark_lease_start(struct etcdlock *k)
{
	char url[400], body[40];

	k->mark_lease = 0;
	k->mark_deadline = boottime_now() + k->ttl;
	snprintf(url, sizeof url, "%s/v3/lease/grant", k->etcd.base[k->etcd.current]);
	snprintf(body, sizeof body, "{\"TTL\":\"%lld\"}", (long long)((k->ttl + NS_PER_S - 1) / NS_PER_S));
	k->granted.limit = LONGEST_GRANT;
	if (http_open(&k->grant, &k->granted) != 0)
		return;
	http_prepare(&k->grant, url, k->etcd.headers, body);
	transfer_start(&k->grant);
}

void etcdmark_lease_take(struct etcdlock *k, int64_t until)
{
	int64_t seconds = k->ttl / NS_PER_S;
	json_t *answer;

	if (k->grant.easy != NULL)
		transfer_wait(until, &k->grant.ended, NULL);
	if (k->grant.ended && k->grant.result == CURLE_OK) {
		answer = json_loads(buffer_text(&k->granted), JSON_DISABLE_EOF_CHECK, NULL);
		etcdlock_granted(answer, &seconds, &k->mark_lease);
		json_decref(answer);
	}
	if (k->mark_lease == 0)
		k->mark_deadline = 0;
	transfer_close(&k->grant);
	buffer_clear(&k->granted);
}

static void name_slot(struct etcdlock *k)
{
	char text[700];

	snprintf(text, sizeof text, "%s#held/#slots/%u", k->name, k->place.slot);
	base64_encode(text, k->mark);
	k->slot = (int)k->place.slot;
}

static json_t *enter_request(struct etcdlock *k)
{
	json_t *compare = json_pack("[o, o]", made_at(k->key, k->revision), made_at(k->mark, 0));
	json_t *success = json_array(), *free;

	if (k->place.blocked) {
		free = etcdqueue_free(&k->keys, &k->marks, k->options->mode, k->revision);
		json_array_extend(compare, free);
		json_decref(free);
	}
	/* This wakes the next waiter for a slot in the queue, which is the first now. */
	if (k->options->mode == LEASE_SLOTS)
		json_array_append_new(success, put_request(k, k->key, k->lease));
	json_array_append_new(success, put_request(k, k->mark, k->mark_lease));
	return json_pack("{s:o, s:o, s:[o, o]}", "compare", compare, "success", success, "failure",
	    get_request(k->mark), get_request(k->key));
}

enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until)
{
	enum etcd_reply reply;
	json_t *answer;
	bool done;

	if (k->options->mode == LEASE_SLOTS)
		name_slot(k);
	reply = transact(k, enter_request(k), until, &answer, &done);
	if (reply != ETCD_OK)
		return reply;
	k->seen = etcdqueue_int(json_object_get(answer, "header"), "revision");
	/* After a lost reply the mark may be there already. */
	k->marked = done || response_int(answer, 0, "lease") == k->mark_lease;
	k->mark_made = done ? k->seen : response_int(answer, 0, "create_revision");
	if (k->marked)
		k->deadline = clock_min(k->deadline, k->mark_deadline);
	k->place.found = done || response_int(answer, 1, "create_revision") == k->revision;
	json_decref(answer);
	if (!k->marked && k->place.found) /* asked for by itself: most requests succeed, and the shorter are sooner read */
		reply = etcdlock_look(k, k->revision, until);
	return reply != ETCD_OK || k->place.found ? reply : ETCD_GONE;
}

enum etcd_reply etcdmark_renew(struct etcdlock *k, int64_t until)
{
	json_t *answer;
	enum etcd_reply reply = etcdmark_lease(k, until);
	bool done;

	if (reply != ETCD_OK)
		return reply;
	/* The lease before, with nothing under it, ends by itself. */
	reply = transact(k,
	    json_pack("{s:[o, o], s:[o]}", "compare", made_at(k->key, k->revision),
		made_at(k->mark, k->mark_made), "success", put_request(k, k->mark, k->mark_lease)),
	    until, &answer, &done);
	if (reply != ETCD_OK)
		return reply;
	k->seen = etcdqueue_int(json_object_get(answer, "header"), "revision");
	json_decref(answer);
	return done ? ETCD_OK : ETCD_GONE;
}

enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until)
{
	json_t *answer;
	enum etcd_reply reply;
	bool done;

	reply = transact(k,
	    json_pack("{s:[o], s:[o, o], s:[o]}", "compare", made_at(k->key, k->revision), "success",
		delete_request(k->key), delete_request(k->mark), "failure", get_request(k->mark)),
	    until, &answer, &done);
	if (reply != ETCD_OK)
		return reply;
	/* If the mark is gone as well, an earlier request, whose reply was lost, has removed both; libcurl
	   also repeats a request when a connection ends. No other process removes the mark before our
	   deadline. */
	if (!done && (response_int(answer, 0, "create_revision") == k->mark_made ||
			 (k->etcd.sent == 1 && boottime_now() >= k->deadline)))
		reply = ETCD_GONE;
	else
		k->marked = false;
	json_decref(answer);
	return reply;
}

enum etcd_reply etcdmark_remove(struct etcdlock *k, int64_t until)
{
	json_t *answer;
	enum etcd_reply reply;
	bool done;

	/* The slot number may be another holder's by now. */
	reply = transact(k,
	    json_pack("{s:[o], s:[o, o], s:[o]}", "compare", made_at(k->mark, k->mark_made),
		"success", delete_request(k->key), delete_request(k->mark), "failure", delete_request(k->key)),
	    until, &answer, &done);
	json_decref(answer);
	if (reply == ETCD_OK)
		k->marked = false;
	return reply;
}
