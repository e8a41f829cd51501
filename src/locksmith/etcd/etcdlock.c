#include <config.h>

#include "locksmith/etcd/etcdlock.h"

#include "locksmith/common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

json_t *etcdlock_number(int64_t n)
{
	return json_sprintf("%" PRId64, n);
}

void etcdlock_keys(struct etcdlock *k)
{
	char marks[sizeof k->name + 8];

	snprintf(marks, sizeof marks, "%s#held", k->name);
	etcdqueue_keys(&k->keys, k->name, k->options->mode);
	etcdqueue_keys(&k->marks, marks, k->options->mode);
}

bool etcdlock_granted(const json_t *answer, int64_t *seconds, int64_t *id)
{
	int64_t asked = *seconds;

	*id = etcdqueue_int(answer, "ID");
	/* The server may give more than was asked for. */
	*seconds = etcdqueue_int(answer, "TTL");
	if (*id == 0 || *seconds < asked || *seconds > LONGEST_SECONDS)
		*id = 0;
	return *id != 0;
}

enum etcd_reply etcdlock_lease(struct etcdlock *k, int64_t *seconds, int64_t *id, int64_t until)
{
	json_t *answer;
	enum etcd_reply reply;
	bool granted;

	reply = etcdrpc_call(&k->etcd, "/v3/lease/grant",
	    json_pack("{s:o}", "TTL", etcdlock_number(*seconds)), until, &answer);
	if (reply != ETCD_OK)
		return reply;
	granted = etcdlock_granted(answer, seconds, id);
	json_decref(answer);
	if (granted)
		return ETCD_OK;
	failure_set(&k->etcd.failure, EXIT_UNAVAILABLE, "the server granted no lease");
	return ETCD_FATAL;
}

enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until)
{
	int64_t seconds = (k->ttl + NS_PER_S - 1) / NS_PER_S, sent = boottime_now();
	const char *part = k->options->mode == LEASE_SHARED  ? "#shared/"
			   : k->options->mode == LEASE_SLOTS ? "#slots/"
							    : "";
	char text[700];
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
	snprintf(text, sizeof text, "%s/%s%016" PRIx64, k->name, part, (uint64_t)k->lease);
	base64_encode(text, k->key);
	snprintf(text, sizeof text, "%s#held/%s%016" PRIx64, k->name, part, (uint64_t)k->lease);
	base64_encode(text, k->mark);
	etcdqueue_value(k->options, text, sizeof text);
	base64_encode(text, k->value);
	return ETCD_OK;
}

enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until)
{
	int64_t sent = boottime_now(), seconds;
	json_t *answer, *result;
	enum etcd_reply reply;

	reply = etcdrpc_call(&k->etcd, "/v3/lease/keepalive",
	    json_pack("{s:o}", "ID", etcdlock_number(k->lease)), until, &answer);
	if (reply != ETCD_OK)
		return reply;
	result = json_object_get(answer, "result");
	/* The reply about an ended lease has no TTL. */
	seconds = etcdqueue_int(result, "TTL");
	reply = !json_is_object(result) ? ETCD_SILENT : seconds <= 0 ? ETCD_GONE : ETCD_OK;
	json_decref(answer);
	if (reply == ETCD_OK)
		k->deadline = sent + (seconds * NS_PER_S < k->ttl ? seconds * NS_PER_S : k->ttl);
	return reply;
}

static int64_t store_revision(const json_t *answer)
{
	return etcdqueue_int(json_object_get(answer, "header"), "revision");
}

void etcdlock_note_place(struct etcdlock *k, const json_t *responses)
{
	etcdqueue_place(responses, &k->keys, &k->marks, k->options, &k->place);
}

/* The i-th response's first key was made when ours was. */
static bool is_ours(const struct etcdlock *k, const json_t *answer, size_t i)
{
	const json_t *kvs = etcdqueue_kvs(json_object_get(answer, "responses"), i);

	return k->revision > 0 &&
	       etcdqueue_int(json_array_get(kvs, 0), "create_revision") == k->revision;
}

enum etcd_reply etcdlock_look(struct etcdlock *k, int64_t revision, int64_t until)
{
	json_t *questions = etcdqueue_questions(&k->keys, &k->marks, k->options, revision), *answer;
	size_t own = json_array_size(questions);
	enum etcd_reply reply;

	if (revision != INT64_MAX)
		json_array_append_new(questions,
		    json_pack("{s:{s:s, s:b}}", "request_range", "key", k->key, "keys_only", 1));
	reply = etcdrpc_call(
	    &k->etcd, "/v3/kv/txn", json_pack("{s:o}", "success", questions), until, &answer);
	if (reply != ETCD_OK)
		return reply;
	k->place.found = is_ours(k, answer, own);
	k->seen = store_revision(answer);
	etcdlock_note_place(k, json_object_get(answer, "responses"));
	json_decref(answer);
	return ETCD_OK;
}

static json_t *put_under(const struct etcdlock *k, const char *key, int64_t lease)
{
	return json_pack("{s:{s:s, s:s, s:o}}", "request_put", "key", key, "value", k->value, "lease",
	    etcdlock_number(lease));
}

/* The look comes before the put: the keys that it finds are before ours. */
static json_t *look_and_put(struct etcdlock *k)
{
	json_t *all = etcdqueue_questions(&k->keys, &k->marks, k->options, INT64_MAX);

	json_array_append_new(all, put_under(k, k->key, k->lease));
	return all;
}

/* If the lock is free: key and mark at once. A slot has no number before the look. */
static json_t *enter_or_queue(struct etcdlock *k)
{
	if (k->mark_lease == 0 || k->options->mode == LEASE_SLOTS)
		return look_and_put(k);
	return json_pack("[{s:{s:o, s:[o, o], s:o}}]", "request_txn", "compare",
	    etcdqueue_free(&k->keys, &k->marks, k->options->mode, INT64_MAX), "success",
	    put_under(k, k->key, k->lease), put_under(k, k->mark, k->mark_lease), "failure", look_and_put(k));
}

static void note_marked(struct etcdlock *k, int64_t revision)
{
	k->marked = true;
	k->mark_made = revision;
	k->deadline = clock_min(k->deadline, k->mark_deadline);
}

/* The responses to enter_or_queue. */
static void note_queued(struct etcdlock *k, const json_t *answer)
{
	const json_t *responses = json_object_get(answer, "responses");
	const json_t *inner = json_object_get(json_array_get(responses, 0), "response_txn");

	k->revision = k->seen = store_revision(answer);
	k->place = (struct etcdqueue_place){.found = true};
	if (inner != NULL && json_is_true(json_object_get(inner, "succeeded")))
		note_marked(k, k->revision);
	else
		etcdlock_note_place(k, inner != NULL ? json_object_get(inner, "responses") : responses);
}

/* Our key is there if the reply to an earlier request was lost; the mark is with it, or was not made. */
static enum etcd_reply note_not_queued(struct etcdlock *k, const json_t *answer, int64_t until)
{
	const json_t *responses = json_object_get(answer, "responses");
	const json_t *key = json_array_get(etcdqueue_kvs(responses, 0), 0);
	const json_t *mark = json_array_get(etcdqueue_kvs(responses, 1), 0);

	k->revision = etcdqueue_int(key, "create_revision");
	if (k->revision > 0 && k->mark_lease != 0 && etcdqueue_int(mark, "lease") == k->mark_lease)
		note_marked(k, etcdqueue_int(mark, "create_revision"));
	return k->revision > 0 ? etcdlock_look(k, k->revision, until) : ETCD_OK;
}

enum etcd_reply etcdlock_queue(struct etcdlock *k, int64_t unless_newer, int64_t until, bool *made)
{
	json_t *compare, *body, *answer;
	enum etcd_reply reply;

	if (unless_newer >= 0)
		compare = json_pack("{s:s, s:s, s:s, s:s, s:o}", "key", k->keys.all.first,
		    "range_end", k->keys.all.end, "target", "MOD", "result", "LESS", "mod_revision",
		    etcdlock_number(unless_newer + 1));
	else
		compare = json_pack("{s:s, s:s, s:s, s:s}", "key", k->key, "target", "CREATE",
		    "result", "EQUAL", "create_revision", "0");
	body = json_pack("{s:[o], s:o, s:[{s:{s:s}}, {s:{s:s}}]}", "compare", compare, "success",
	    enter_or_queue(k), "failure", "request_range", "key", k->key, "request_range", "key", k->mark);
	reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, &answer);
	if (reply != ETCD_OK)
		return reply;
	if (json_is_true(json_object_get(answer, "succeeded")))
		note_queued(k, answer);
	else
		reply = note_not_queued(k, answer, until);
	json_decref(answer);
	*made = k->revision > 0;
	return reply;
}

static json_t *range_request(const struct etcdqueue_span *s)
{
	return json_pack("{s:{s:s, s:s, s:s, s:s}}", "request_range", "key", s->first, "range_end",
	    s->end, "sort_order", "ASCEND", "sort_target", "CREATE");
}

enum etcd_reply etcdlock_range(
    struct etcdlock *k, int64_t until, json_t **answer, const json_t **kvs, const json_t **marks)
{
	json_t *body = json_pack("{s:[o, o]}", "success", range_request(&k->keys.all), range_request(&k->marks.all));
	enum etcd_reply reply = etcdrpc_call(&k->etcd, "/v3/kv/txn", body, until, answer);
	const json_t *responses;

	if (reply != ETCD_OK)
		return reply;
	responses = json_object_get(*answer, "responses");
	*kvs = etcdqueue_kvs(responses, 0);
	*marks = etcdqueue_kvs(responses, 1);
	return ETCD_OK;
}

enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t *lease, int64_t until)
{
	json_t *answer;
	enum etcd_reply reply;

	if (*lease == 0)
		return ETCD_OK;
	reply = etcdrpc_call(&k->etcd, "/v3/lease/revoke",
	    json_pack("{s:o}", "ID", etcdlock_number(*lease)), until, &answer);
	json_decref(answer);
	if (reply == ETCD_GONE && k->etcd.sent > 1)
		reply = ETCD_OK; /* an earlier request, whose reply was lost, has done it */
	if (reply == ETCD_OK)
		*lease = 0;
	return reply;
}
