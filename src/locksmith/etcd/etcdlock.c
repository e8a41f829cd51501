#include <config.h>

#include "locksmith/etcd/etcdlock.h"

#include "locksmith/etcd/base64.h"
#include "locksmith/common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* int64 travels as a string: a JSON number would lose its last digits on the way. */
static json_t *number(int64_t n)
{
	return json_sprintf("%" PRId64, n);
}

enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until)
{
	int64_t seconds = (k->ttl + NS_PER_S - 1) / NS_PER_S, sent = clock_now();
	char name[700];
	json_t *answer;
	enum etcd_reply reply;

	k->revision = 0;
	k->slot = -1;
	reply = etcdrpc_call(&k->etcd, "/v3/lease/grant",
	    json_pack("{s:o}", "TTL", number(seconds)), until, &answer);
	if (reply != ETCD_OK)
		return reply;
	k->lease = etcdqueue_int(answer, "ID");
	/* The server may give more than was asked for. */
	seconds = etcdqueue_int(answer, "TTL");
	json_decref(answer);
	if (k->lease == 0 || seconds <= 0 || seconds > LONGEST_SECONDS) {
		why_set(&k->etcd.why, EXIT_UNAVAILABLE, "the server granted no lease");
		return ETCD_FATAL;
	}
	k->ttl = seconds * NS_PER_S;
	/* A lost reply was sent again: the lease is not older than the last one sent, but the first
	 * is safe. */
	k->deadline = sent + k->ttl;
	snprintf(name, sizeof name, "%s/%016" PRIx64, k->name, (uint64_t)k->lease);
	base64_encode(name, k->key);
	return ETCD_OK;
}

enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until)
{
	int64_t sent = clock_now(), seconds;
	json_t *answer, *result;
	enum etcd_reply reply;

	reply = etcdrpc_call(&k->etcd, "/v3/lease/keepalive",
	    json_pack("{s:o}", "ID", number(k->lease)), until, &answer);
	if (reply != ETCD_OK)
		return reply;
	result = json_object_get(answer, "result");
	/* A dead lease is answered like a living one, only without a TTL. */
	seconds = etcdqueue_int(result, "TTL");
	reply = !json_is_object(result) ? ETCD_SILENT : seconds <= 0 ? ETCD_GONE : ETCD_OK;
	json_decref(answer);
	if (reply == ETCD_OK)
		k->deadline = sent + (seconds * NS_PER_S < k->ttl ? seconds * NS_PER_S : k->ttl);
	return reply;
}

static json_t *put(const char *key, const char *text, int64_t lease)
{
	char value[BASE64_SIZE(600)];

	base64_encode(text, value);
	return json_pack("{s:{s:s, s:s, s:o}}", "request_put", "key", key, "value", value, "lease",
	    number(lease));
}

enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made)
{
	char text[600];
	json_t *compare, *body, *answer, *response;
	enum etcd_reply reply;

	etcdqueue_value(k->options, text, sizeof text);
	if (unless_newer >= 0)
		compare = json_pack("{s:s, s:s, s:s, s:s, s:o}", "key", k->first, "range_end",
		    k->end, "target", "MOD", "result", "LESS", "mod_revision",
		    number(unless_newer + 1));
	else
		compare = json_pack("{s:s, s:s, s:s, s:s}", "key", k->key, "target", "CREATE",
		    "result", "EQUAL", "create_revision", "0");
	/* If the reply is lost and the call repeated, the failure branch finds our key. */
	body = json_pack("{s:[o], s:[o], s:[{s:{s:s}}]}", "compare", compare, "success",
	    put(k->key, text, k->lease), "failure", "request_range", "key", k->key);
	reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	k->revision = 0;
	if (json_is_true(json_object_get(answer, "succeeded"))) {
		k->revision = etcdqueue_int(json_object_get(answer, "header"), "revision");
	} else {
		response = json_object_get(
		    json_array_get(json_object_get(answer, "responses"), 0), "response_range");
		k->revision = etcdqueue_int(
		    json_array_get(json_object_get(response, "kvs"), 0), "create_revision");
	}
	json_decref(answer);
	*made = k->revision > 0;
	return ETCD_OK;
}

static json_t *range(const char *first, const char *end)
{
	return json_pack("{s:{s:s, s:s, s:s, s:s}}", "request_range", "key", first, "range_end",
	    end, "sort_order", "ASCEND", "sort_target", "CREATE");
}

static json_t *ranged(const json_t *answer, size_t i)
{
	const json_t *response = json_array_get(json_object_get(answer, "responses"), i);

	return json_object_get(json_object_get(response, "response_range"), "kvs");
}

/* The locks below this one in name have their keys in the same range, which excludes as with etcdctl.
   But not their marks: nobody who wants this lock sees to it that they go. */
static void leave_out_others_marks(const struct etcdlock *k, json_t *kvs)
{
	char key[700];

	for (size_t i = json_array_size(kvs); i-- > 0;) {
		const char *text =
		    json_string_value(json_object_get(json_array_get(kvs, i), "key"));

		if (text != NULL && base64_decode(text, key, sizeof key) == 0 &&
		    strlen(key) > strlen(k->name) && strstr(key + strlen(k->name), "#held/") != NULL)
			json_array_remove(kvs, i);
	}
}

enum etcd_reply etcdlock_range(
    struct etcdlock *k, int64_t until, json_t **answer, json_t **kvs, json_t **marks)
{
	json_t *body = json_pack("{s:[o, o]}", "success", range(k->first, k->end),
	    range(k->marks, k->marks_end));
	enum etcd_reply reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, answer);

	if (reply != ETCD_OK)
		return reply;
	k->seen = etcdqueue_int(json_object_get(*answer, "header"), "revision");
	*kvs = ranged(*answer, 0);
	leave_out_others_marks(k, *kvs);
	*marks = ranged(*answer, 1);
	return ETCD_OK;
}

enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until)
{
	const struct options *o = k->options;
	json_t *answer, *kvs, *marks;
	enum etcd_reply reply = etcdlock_range(k, until, &answer, &kvs, &marks);

	if (reply != ETCD_OK)
		return reply;
	etcdqueue_place(kvs, o->mode, o->slots, revision, &k->place);
	etcdqueue_orphans(kvs, marks, o->mode, o->slots, &k->place);
	json_decref(answer);
	return ETCD_OK;
}

enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t until)
{
	json_t *answer;
	enum etcd_reply reply;

	if (k->lease == 0)
		return ETCD_OK;
	reply = etcdrpc_call(&k->etcd, "/v3/lease/revoke",
	    json_pack("{s:o}", "ID", number(k->lease)), until, &answer);
	json_decref(answer);
	if (reply == ETCD_GONE && k->etcd.sent > 1)
		reply = ETCD_OK; /* an earlier one had done it */
	if (reply == ETCD_OK)
		k->lease = 0;
	return reply;
}
