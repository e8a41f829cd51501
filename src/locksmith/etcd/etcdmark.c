#include <config.h>

#include "locksmith/etcd/etcdmark.h"

#include "locksmith/etcd/base64.h"
#include "locksmith/common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static json_t *number(int64_t n)
{
	return json_sprintf("%" PRId64, n);
}

/* That KEY was made at that revision; 0: that it is not there. */
static json_t *made_at(const char *key, int64_t revision)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "key", key, "target", "CREATE", "result", "EQUAL",
	    "create_revision", number(revision));
}

static json_t *get(const char *key)
{
	return json_pack("{s:{s:s}}", "request_range", "key", key);
}

static json_t *delete(const char *key)
{
	return json_pack("{s:{s:s}}", "request_delete_range", "key", key);
}

/* The key that the i-th request of a transaction has got, or NULL. */
static const json_t *got(const json_t *answer, size_t i)
{
	const json_t *response = json_array_get(json_object_get(answer, "responses"), i);

	return json_array_get(
	    json_object_get(json_object_get(response, "response_range"), "kvs"), 0);
}

static bool succeeded(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "succeeded"));
}

static bool is_ours(const struct etcdlock *k, const json_t *mark)
{
	const char *value = json_string_value(json_object_get(mark, "value"));

	return value != NULL && strcmp(value, k->mark_value) == 0;
}

static void name_mark(struct etcdlock *k, unsigned int n)
{
	char text[700], value[600];

	if (k->options->mode == MODE_SLOTS)
		snprintf(text, sizeof text, "%s#held/slot/%u", k->name, n);
	else
		snprintf(text, sizeof text, "%s#held/%016" PRIx64, k->name, (uint64_t)k->lease);
	base64_encode(text, k->mark);
	etcdqueue_value(k->options, value, sizeof value);
	snprintf(text, sizeof text, "%016" PRIx64 " %" PRId64 " %s", (uint64_t)k->lease,
	    k->ttl / NS_PER_S, value);
	base64_encode(text, k->mark_value);
}

/* Under one name, if nobody has that and our key is there: we are in the queue still. */
static enum etcd_reply put(struct etcdlock *k, int64_t until)
{
	json_t *body, *answer;
	enum etcd_reply reply;

	body = json_pack("{s:[o, o], s:[{s:{s:s, s:s}}], s:[o, o]}", "compare",
	    made_at(k->key, k->revision), made_at(k->mark, 0), "success", "request_put", "key",
	    k->mark, "value", k->mark_value, "failure", get(k->key), get(k->mark));
	reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	/* After a lost reply the mark may be there already. */
	k->marked = succeeded(answer) || is_ours(k, got(answer, 1));
	if (!succeeded(answer) && etcdqueue_int(got(answer, 0), "create_revision") != k->revision)
		reply = ETCD_GONE;
	json_decref(answer);
	return reply;
}

enum etcd_reply etcdmark_enter(struct etcdlock *k, int64_t until)
{
	unsigned int names = k->options->mode == MODE_SLOTS ? k->options->slots : 1;
	enum etcd_reply reply = ETCD_OK;

	/* Those before us in the queue are fewer than N, so one is free, unless others count
	 * otherwise. */
	k->marked = false;
	for (unsigned int n = 0; n < names && !k->marked && reply == ETCD_OK; n++) {
		name_mark(k, n);
		reply = put(k, until);
		if (k->marked && k->options->mode == MODE_SLOTS)
			k->slot = (int)n;
	}
	return reply;
}

enum etcd_reply etcdmark_release(struct etcdlock *k, int64_t until)
{
	json_t *body, *answer;
	enum etcd_reply reply;

	body = json_pack("{s:[o], s:[o, o], s:[o]}", "compare", made_at(k->key, k->revision),
	    "success", delete(k->key), delete(k->mark), "failure", get(k->mark));
	reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	/* If the mark is gone as well, an earlier one, whose reply was lost, has taken both away: also
	   libcurl sends it again, by itself, when a connection ends. Nobody else takes the mark away
	   before our deadline. */
	if (!succeeded(answer) && (is_ours(k, got(answer, 0)) ||
				      (k->etcd.sent == 1 && clock_now() >= k->deadline)))
		reply = ETCD_GONE;
	else
		k->marked = false;
	json_decref(answer);
	return reply;
}

enum etcd_reply etcdmark_remove(struct etcdlock *k, int64_t until)
{
	json_t *body, *answer;
	enum etcd_reply reply;

	/* The number of a slot may be another's by now. */
	body = json_pack("{s:[{s:s, s:s, s:s, s:s}], s:[o]}", "compare", "key", k->mark, "target",
	    "VALUE", "result", "EQUAL", "value", k->mark_value, "success", delete(k->mark));
	reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, &answer);
	json_decref(answer);
	if (reply == ETCD_OK)
		k->marked = false;
	return reply;
}

static int64_t grant(struct etcdlock *k, int64_t seconds, int64_t until)
{
	json_t *answer;
	int64_t lease;

	if (etcdrpc_call(&k->etcd, "/v3/lease/grant", json_pack("{s:o}", "TTL", number(seconds)),
		until, &answer) != ETCD_OK)
		return 0;
	lease = etcdqueue_int(answer, "ID");
	json_decref(answer);
	return lease;
}

void etcdmark_condemn(struct etcdlock *k, int64_t until)
{
	const struct etcdqueue_orphan *orphan = &k->place.orphan;
	char name[700], key[BASE64_SIZE(sizeof name)];
	json_t *body, *answer;
	int64_t lease;

	if (orphan->lapses)
		return;
	lease = grant(k, orphan->seconds, until);
	if (lease == 0)
		return; /* another look, another try */
	snprintf(name, sizeof name, "%s/%016" PRIx64, k->name, (uint64_t)orphan->owner);
	base64_encode(name, key);
	body = json_pack("{s:[o, {s:s, s:s, s:s, s:o}], s:[{s:{s:s, s:s, s:o}}]}", "compare",
	    made_at(key, 0), "key", orphan->mark, "target", "MOD", "result", "EQUAL",
	    "mod_revision", number(orphan->revision), "success", "request_put", "key",
	    orphan->mark, "value", orphan->value, "lease", number(lease));
	etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, &answer);
	json_decref(answer);
}
