#include <config.h>

#include "locksmith/etcd/etcdqueue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The questions, by their place in the transaction. */
enum question {
	KEYS_BELOW, /* the nearest key before us, of those below our fellows in name */
	KEYS_ABOVE,
	MARKS_BELOW, /* a mark that is no fellow's */
	MARKS_ABOVE,
	SLOT_KEYS, /* with slots: the N nearest fellows before us, */
	SLOT_MARKS, /* all numbers that are taken, */
	SLOT_HOLDER /* and a holder, for people */
};

int64_t etcdqueue_int(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (json_is_string(v))
		return strtoll(json_string_value(v), NULL, 10);
	return json_is_integer(v) ? json_integer_value(v) : 0;
}

static void fill_span(struct etcdqueue_span *s, const char *name, const char *part)
{
	char text[700];

	snprintf(text, sizeof text, "%s%s/", name, part);
	base64_encode(text, s->first);
	/* The end of a range is the first key beyond it: '0' follows '/'. */
	text[strlen(text) - 1] = '0';
	base64_encode(text, s->end);
}

void etcdqueue_keys(struct etcdqueue_keys *keys, const char *name, enum lease_mode mode)
{
	fill_span(&keys->all, name, "");
	if (mode != LEASE_EXCLUSIVE)
		fill_span(&keys->fellows, name, mode == LEASE_SHARED ? "/#shared" : "/#slots");
	else
		fill_span(&keys->fellows, name, ""), strcpy(keys->fellows.end, keys->fellows.first);
}

/* Any one from first to end. */
static json_t *any_key(const char *first, const char *end)
{
	return json_pack("{s:{s:s, s:s, s:s}}", "request_range", "key", first, "range_end", end,
	    "limit", "1");
}

/* The last ones that were made before that revision; all of them are. */
static json_t *nearest_keys(const char *first, const char *end, int64_t before, unsigned int limit)
{
	json_t *max = before == INT64_MAX ? NULL : json_sprintf("%" PRId64, before - 1);

	return json_pack("{s:{s:s, s:s, s:o, s:o*, s:s, s:s}}", "request_range", "key", first,
	    "range_end", end, "limit", json_sprintf("%u", limit), "max_create_revision", max,
	    "sort_order", "DESCEND", "sort_target", "CREATE");
}

static json_t *slot_numbers(const struct etcdqueue_span *s, unsigned int limit)
{
	return json_pack("{s:{s:s, s:s, s:o, s:b}}", "request_range", "key", s->first, "range_end",
	    s->end, "limit", json_sprintf("%u", limit), "keys_only", 1);
}

json_t *etcdqueue_questions(const struct etcdqueue_keys *keys, const struct etcdqueue_keys *marks,
    const struct options *o, int64_t before)
{
	json_t *all = json_array(), *slot_keys;

	json_array_append_new(all, nearest_keys(keys->all.first, keys->fellows.first, before, 1));
	json_array_append_new(all, nearest_keys(keys->fellows.end, keys->all.end, before, 1));
	json_array_append_new(all, any_key(marks->all.first, marks->fellows.first));
	json_array_append_new(all, any_key(marks->fellows.end, marks->all.end));
	if (o->mode != LEASE_SLOTS)
		return all;
	slot_keys = nearest_keys(keys->fellows.first, keys->fellows.end, before, o->slots);
	json_object_set_new(json_object_get(slot_keys, "request_range"), "keys_only", json_true());
	json_array_append_new(all, slot_keys);
	json_array_append_new(all, slot_numbers(&marks->fellows, o->slots));
	json_array_append_new(all, any_key(marks->fellows.first, marks->fellows.end));
	return all;
}

/* The condition that each key of a range has a create_revision that is EQUAL to, or GREATER than, that one. */
static json_t *all_made(const char *first, const char *end, const char *result, int64_t revision)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "key", first, "range_end", end, "target", "CREATE",
	    "result", result, "create_revision", json_sprintf("%" PRId64, revision));
}

/* No key: etcd compares a range without keys as a key that was made at 0. */
static json_t *none_in(const char *first, const char *end)
{
	return all_made(first, end, "EQUAL", 0);
}

json_t *etcdqueue_free(const struct etcdqueue_keys *keys, const struct etcdqueue_keys *marks,
    enum lease_mode mode, int64_t revision)
{
	json_t *all = json_array();

	/* The marks first, which are few: if there is one, etcd does not read the keys.  An exclusive lock has no
	   fellows: there is nothing below them, and our own key is among the rest. */
	if (mode != LEASE_EXCLUSIVE) {
		json_array_append_new(all, none_in(marks->all.first, marks->fellows.first));
		json_array_append_new(all, none_in(keys->all.first, keys->fellows.first));
	}
	json_array_append_new(all, none_in(marks->fellows.end, marks->all.end));
	json_array_append_new(all, mode == LEASE_EXCLUSIVE && revision != INT64_MAX
		? all_made(keys->all.first, keys->all.end, "GREATER", revision - 1)
		: none_in(keys->fellows.end, keys->all.end));
	return all;
}

const json_t *etcdqueue_kvs(const json_t *responses, size_t i)
{
	const json_t *response = json_array_get(responses, i);

	return json_object_get(json_object_get(response, "response_range"), "kvs");
}

static const json_t *first_kv(const json_t *responses, enum question q)
{
	return json_array_get(etcdqueue_kvs(responses, q), 0);
}

static void watch_key(struct etcdqueue_place *place, const json_t *kv)
{
	const char *key = json_string_value(json_object_get(kv, "key"));

	snprintf(place->watch.first, sizeof place->watch.first, "%s", key != NULL ? key : "");
	place->watch.end[0] = '\0';
}

static void key_of(const json_t *kv, char *key, size_t size)
{
	const char *text = json_string_value(json_object_get(kv, "key"));

	if (text == NULL || base64_decode(text, key, size) != 0)
		key[0] = '\0';
}

static bool is_taken(const json_t *marks, unsigned int n)
{
	char key[700];
	const char *slash;

	for (size_t i = 0; i < json_array_size(marks); i++) {
		key_of(json_array_get(marks, i), key, sizeof key);
		slash = strrchr(key, '/');
		if (slash != NULL && strtoul(slash + 1, NULL, 10) == n)
			return true;
	}
	return false;
}

/* The first waiter waits for a free slot number. Each other one waits until its predecessor has entered,
   which puts its key anew (etcdmark.h), or has gone: so a free number wakes one waiter. */
static void place_among_slots(const json_t *responses, const struct etcdqueue_keys *keys,
    const struct etcdqueue_keys *marks, unsigned int n, struct etcdqueue_place *place)
{
	const json_t *before = etcdqueue_kvs(responses, SLOT_KEYS);
	const json_t *taken = etcdqueue_kvs(responses, SLOT_MARKS);
	const json_t *predecessor = json_array_get(before, 0);

	place->blocked = json_array_size(before) >= n || json_array_size(taken) >= n;
	if (!place->blocked) {
		while (is_taken(taken, place->slot))
			place->slot++;
		return;
	}
	place->puts = json_array_size(before) >= n && etcdqueue_int(predecessor, "version") < 2;
	if (place->puts)
		watch_key(place, predecessor);
	else
		place->watch = json_array_size(before) >= n ? keys->fellows : marks->fellows;
	etcdqueue_describe(first_kv(responses, SLOT_HOLDER), place->who, sizeof place->who);
}

void etcdqueue_place(const json_t *responses, const struct etcdqueue_keys *keys,
    const struct etcdqueue_keys *marks, const struct options *o, struct etcdqueue_place *place)
{
	const json_t *below = first_kv(responses, KEYS_BELOW), *above = first_kv(responses, KEYS_ABOVE);
	const json_t *mark = first_kv(responses, MARKS_BELOW);
	const json_t *key = etcdqueue_int(below, "create_revision") >
				    etcdqueue_int(above, "create_revision")
				? below
				: above;

	if (mark == NULL)
		mark = first_kv(responses, MARKS_ABOVE);
	*place = (struct etcdqueue_place){.found = place->found};
	if (key == NULL && mark == NULL) {
		if (o->mode == LEASE_SLOTS)
			place_among_slots(responses, keys, marks, o->slots, place);
		return;
	}
	place->blocked = true;
	watch_key(place, key != NULL ? key : mark);
	etcdqueue_describe(mark != NULL ? mark : key, place->who, sizeof place->who);
}

static const char *value_of(const json_t *kv)
{
	const char *value = json_string_value(json_object_get(kv, "value"));

	return value != NULL ? value : "";
}

bool etcdqueue_pair(const json_t *kvs, const json_t *kv)
{
	for (size_t i = 0; i < json_array_size(kvs); i++)
		if (strcmp(value_of(json_array_get(kvs, i)), value_of(kv)) == 0)
			return true;
	return false;
}

bool etcdqueue_holds(const json_t *keys, const json_t *marks, size_t i)
{
	const json_t *kv = json_array_get(keys, i);

	return value_of(kv)[0] == '\0' ? i == 0 : etcdqueue_pair(marks, kv);
}

unsigned int etcdqueue_waiting(const json_t *keys, const json_t *marks, int64_t revision)
{
	unsigned int n = 0;

	for (size_t i = 0; i < json_array_size(keys); i++) {
		const json_t *kv = json_array_get(keys, i);

		if (etcdqueue_int(kv, "create_revision") < revision && !etcdqueue_is_mark(kv) &&
		    !etcdqueue_holds(keys, marks, i))
			n++;
	}
	return n;
}

bool etcdqueue_is_mark(const json_t *kv)
{
	char key[700];

	key_of(kv, key, sizeof key);
	return strstr(key, "#held/") != NULL;
}

void etcdqueue_describe(const json_t *kv, char *text, size_t size)
{
	char key[700], value[350];

	if (base64_decode(value_of(kv), value, sizeof value) == 0 && value[0] != '\0') {
		snprintf(text, size, "mode=%s%s", strncmp(value, "slots=", 6) == 0 ? "slots " : "",
		    value);
		return;
	}
	key_of(kv, key, sizeof key);
	snprintf(text, size, "mode=exclusive note=another program's key %.200s", key);
}

void etcdqueue_value(const struct options *o, char *value, size_t size)
{
	char host[65], mode[32];

	if (gethostname(host, sizeof host) != 0)
		host[0] = '\0';
	host[sizeof host - 1] = '\0';
	if (o->mode == LEASE_SLOTS)
		snprintf(mode, sizeof mode, "slots=%u", o->slots);
	else
		snprintf(mode, sizeof mode, "%s", o->mode == LEASE_SHARED ? "shared" : "exclusive");
	snprintf(value, size, "%s pid=%ld host=%s since=%lld%s%.200s", mode, o->pid, host,
	    (long long)time(NULL), o->note[0] != '\0' ? " note=" : "", o->note);
}
