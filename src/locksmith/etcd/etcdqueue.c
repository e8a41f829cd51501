/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcdqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The requests, by their place in the transaction. */
enum question {
	KEYS_BELOW, /* the nearest key before ours, of those below our fellows in name */
	KEYS_ABOVE,
	MARKS_BELOW, /* a mark that is no fellow's */
	MARKS_ABOVE,
	SLOT_KEYS, /* with slots: the N nearest fellows before ours, */
	SLOT_MARKS, /* all numbers that are taken, */
	SLOT_HOLDER /* and a holder, for messages */
};

static void fill_span(struct etcdqueue_span *s, const char *name, const char *part)
{
	snprintf(s->first, sizeof s->first, "%s%s/", name, part);
	/* The end of a range is the first key beyond it: '0' follows '/'. */
	snprintf(s->end, sizeof s->end, "%s%s0", name, part);
}

static void fill_keys(struct etcdqueue_keys *keys, const char *name, enum lease_mode mode)
{
	fill_span(&keys->all, name, "");
	if (mode != LEASE_EXCLUSIVE)
		fill_span(&keys->fellows, name, mode == LEASE_SHARED ? "/#shared" : "/#slots");
	else
		fill_span(&keys->fellows, name, ""), strcpy(keys->fellows.end, keys->fellows.first);
}

void etcdqueue_init(struct etcdqueue *q, const char *name, const struct options *o)
{
	char marks[ETCD_KEY - 20];

	snprintf(marks, sizeof marks, "%s#held", name);
	q->options = o;
	fill_keys(&q->keys, name, o->mode);
	fill_keys(&q->marks, marks, o->mode);
}

static void ask(struct pb_out *m, enum txn_branch branch, struct txn_range range, const char *first, const char *end)
{
	range.key = first;
	range.end = end;
	txn_range(m, branch, &range);
}

size_t etcdqueue_ask(const struct etcdqueue *q, struct pb_out *m, enum txn_branch branch, int64_t before)
{
	const struct etcdqueue_keys *keys = &q->keys, *marks = &q->marks;
	struct txn_range nearest = {.limit = 1, .before = before, .order = TXN_NEWEST_FIRST}, any = {.limit = 1};
	struct txn_range numbers = {.limit = q->options->slots, .keys_only = true};

	ask(m, branch, nearest, keys->all.first, keys->fellows.first);
	ask(m, branch, nearest, keys->fellows.end, keys->all.end);
	ask(m, branch, any, marks->all.first, marks->fellows.first);
	ask(m, branch, any, marks->fellows.end, marks->all.end);
	if (q->options->mode != LEASE_SLOTS)
		return SLOT_KEYS;
	nearest.limit = q->options->slots;
	nearest.keys_only = true;
	ask(m, branch, nearest, keys->fellows.first, keys->fellows.end);
	ask(m, branch, numbers, marks->fellows.first, marks->fellows.end);
	ask(m, branch, any, marks->fellows.first, marks->fellows.end);
	return SLOT_HOLDER + 1;
}

/* No key: etcd compares a range without keys as a key that was made at 0. */
static void none_in(struct pb_out *m, const char *first, const char *end)
{
	txn_condition(m, &(struct txn_condition){.key = first, .end = end, .what = TXN_MADE});
}

void etcdqueue_free(const struct etcdqueue *q, struct pb_out *m, int64_t revision)
{
	const struct etcdqueue_keys *keys = &q->keys, *marks = &q->marks;
	bool exclusive = q->options->mode == LEASE_EXCLUSIVE;

	/* The marks first, which are few: if there is one, etcd does not read the keys.  An exclusive lock has no
	   fellows: there is nothing below them, and our own key is among the rest. */
	if (!exclusive) {
		none_in(m, marks->all.first, marks->fellows.first);
		none_in(m, keys->all.first, keys->fellows.first);
	}
	none_in(m, marks->fellows.end, marks->all.end);
	if (exclusive && revision != INT64_MAX)
		txn_condition(m, &(struct txn_condition){.key = keys->all.first, .end = keys->all.end,
		    .what = TXN_MADE, .result = TXN_GREATER, .revision = revision - 1});
	else
		none_in(m, keys->fellows.end, keys->all.end);
}

static size_t length_of(struct pb text)
{
	return (size_t)(text.end - text.at);
}

/* If another program's key is no string, or too long for one, all keys of its range are watched. */
static void watch_key(struct etcdqueue_place *place, const struct etcd_kv *kv,
    const struct etcdqueue_span *range)
{
	pb_string(kv->key, place->watch.first, sizeof place->watch.first);
	place->watch.end[0] = '\0';
	if (strlen(place->watch.first) != length_of(kv->key))
		place->watch = *range;
}

static bool is_taken(struct pb marks, unsigned int n)
{
	char key[ETCD_KEY];
	const char *slash;
	struct etcd_kv kv;

	while (txn_next(&marks, &kv)) {
		pb_string(kv.key, key, sizeof key);
		slash = strrchr(key, '/');
		if (slash != NULL && strtoul(slash + 1, NULL, 10) == n)
			return true;
	}
	return false;
}

static unsigned int count_kvs(struct pb kvs)
{
	struct etcd_kv kv;
	unsigned int n = 0;

	while (txn_next(&kvs, &kv))
		n++;
	return n;
}

/* The first waiter waits for a free slot number. Each other one waits until its predecessor has entered,
   which puts its key anew (etcdlock.h), or has gone: so a free number wakes one waiter. */
static void place_among_slots(const struct etcdqueue *q, struct pb answer, struct etcdqueue_place *place)
{
	unsigned int n = q->options->slots;
	struct pb taken = txn_kvs(answer, SLOT_MARKS);
	bool first = count_kvs(txn_kvs(answer, SLOT_KEYS)) < n;
	struct etcd_kv predecessor, holder;

	place->blocked = !first || count_kvs(taken) >= n;
	if (!place->blocked) {
		while (is_taken(taken, place->slot))
			place->slot++;
		return;
	}
	txn_first(answer, SLOT_KEYS, &predecessor);
	place->puts = !first && predecessor.version < 2;
	if (place->puts)
		watch_key(place, &predecessor, &q->keys.fellows);
	else
		place->watch = first ? q->marks.fellows : q->keys.fellows;
	txn_first(answer, SLOT_HOLDER, &holder);
	etcdqueue_describe(&holder, place->who, sizeof place->who);
}

void etcdqueue_place(const struct etcdqueue *q, struct pb answer, struct etcdqueue_place *place)
{
	struct etcd_kv below, key, mark;
	bool has_below = txn_first(answer, KEYS_BELOW, &below);
	bool has_key = txn_first(answer, KEYS_ABOVE, &key) || has_below;
	bool has_mark = txn_first(answer, MARKS_BELOW, &mark) || txn_first(answer, MARKS_ABOVE, &mark);

	if (has_below && below.made >= key.made)
		key = below;
	*place = (struct etcdqueue_place){.found = place->found};
	if (!has_key && !has_mark) {
		if (q->options->mode == LEASE_SLOTS)
			place_among_slots(q, answer, place);
		return;
	}
	place->blocked = true;
	if (has_key)
		watch_key(place, &key, &q->keys.all);
	else
		watch_key(place, &mark, &q->marks.all);
	etcdqueue_describe(has_mark ? &mark : &key, place->who, sizeof place->who);
}

static bool same_value(const struct etcd_kv *a, const struct etcd_kv *b)
{
	size_t length = length_of(a->value);

	return length == length_of(b->value) && (length == 0 || memcmp(a->value.at, b->value.at, length) == 0);
}

bool etcdqueue_pair(struct pb kvs, const struct etcd_kv *kv)
{
	struct etcd_kv other;

	while (txn_next(&kvs, &other))
		if (same_value(&other, kv))
			return true;
	return false;
}

bool etcdqueue_holds(const struct etcd_kv *kv, struct pb marks, bool first)
{
	return length_of(kv->value) == 0 ? first : etcdqueue_pair(marks, kv);
}

unsigned int etcdqueue_waiting(struct pb keys, struct pb marks, int64_t revision)
{
	unsigned int n = 0;
	struct etcd_kv kv;

	for (bool first = true; txn_next(&keys, &kv); first = false)
		if (kv.made < revision && !etcdqueue_is_mark(&kv) && !etcdqueue_holds(&kv, marks, first))
			n++;
	return n;
}

bool etcdqueue_is_mark(const struct etcd_kv *kv)
{
	char key[ETCD_KEY];

	pb_string(kv->key, key, sizeof key);
	return strstr(key, "#held/") != NULL;
}

void etcdqueue_describe(const struct etcd_kv *kv, char *text, size_t size)
{
	char key[ETCD_KEY], value[350];

	pb_string(kv->value, value, sizeof value);
	if (value[0] != '\0') {
		snprintf(text, size, "mode=%s%s", strncmp(value, "slots=", 6) == 0 ? "slots " : "", value);
		return;
	}
	pb_string(kv->key, key, sizeof key);
	snprintf(text, size, "mode=exclusive note=another program's key %.200s", key);
}

void etcdqueue_value(const struct options *o, char *value, size_t size)
{
	char holder[350], slots[24] = "";

	if (o->mode == LEASE_SLOTS)
		snprintf(slots, sizeof slots, "=%u", o->slots);
	options_holder(o, holder, sizeof holder);
	snprintf(value, size, "%s%s %s", lease_mode_name(o->mode), slots, holder);
}
