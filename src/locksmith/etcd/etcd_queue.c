/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/etcd/etcd_queue.h"

/* The requests of etcd_queue_ask(), in their order in the transaction. */
enum question {
	/* the nearest key made before ours, of those whose names sort before our peers' */
	KEYS_BELOW,
	KEYS_ABOVE, /* the same, of those whose names sort after our peers' */
	OLDEST,     /* the oldest key of all, usually the holder's, for messages */
	SLOT_KEYS,  /* with slots: the N nearest of the slots' keys made before ours */
	NUMBERS,    /* with slots: the keys of all slot numbers that are taken */
	QUESTIONS
};

/* The value of a holder's key begins with this. */
static const char holds_mark[] = "holds ";

static void fill_span(struct etcd_span *span, const char *name, const char *part)
{
	snprintf(span->first, sizeof span->first, "%s/%s", name, part);
	/* The end of a range is the first key beyond it.  The range's keys begin with FIRST, which
	 * ends in '/'; '0' follows '/' in ASCII. */
	snprintf(span->end, sizeof span->end, "%.*s0", (int)strlen(span->first) - 1, span->first);
}

void etcd_queue_init(struct etcd_queue *queue, const char *name, const struct options *options)
{
	queue->options = options;
	fill_span(&queue->all, name, "");
	fill_span(&queue->slots, name, "#slots/");
	fill_span(&queue->numbers, name, "#slots#/");
	if (options->mode == LEASE_SHARED) {
		fill_span(&queue->peers, name, "#shared/");
	} else if (options->mode == LEASE_SLOTS) {
		/* One range for both, because the keys of slot numbers sort right before the slots'
		 * keys. */
		strcpy(queue->peers.first, queue->numbers.first);
		strcpy(queue->peers.end, queue->slots.end);
	} else {
		strcpy(queue->peers.first, queue->all.first);
		strcpy(queue->peers.end, queue->all.first);
	}
}

static void ask(struct protobuf_out *request, enum txn_branch branch, struct etcd_wire_range range,
    const char *first, const char *end)
{
	range.key = first;
	range.end = end;
	etcd_wire_range(request, branch, &range);
}

size_t etcd_queue_ask(const struct etcd_queue *queue, struct protobuf_out *request,
    enum txn_branch branch, int64_t before)
{
	struct etcd_wire_range nearest = {.limit = 1,
	    .before = before,
	    .order = TXN_NEWEST_FIRST,
	    .keys_only = true};
	struct etcd_wire_range oldest = {.limit = 1, .before = before, .order = TXN_OLDEST_FIRST};
	struct etcd_wire_range numbers = {.limit = queue->options->slots, .keys_only = true};

	ask(request, branch, nearest, queue->all.first, queue->peers.first);
	ask(request, branch, nearest, queue->peers.end, queue->all.end);
	ask(request, branch, oldest, queue->all.first, queue->all.end);
	if (queue->options->mode != LEASE_SLOTS)
		return SLOT_KEYS;
	nearest.limit = queue->options->slots;
	ask(request, branch, nearest, queue->slots.first, queue->slots.end);
	ask(request, branch, numbers, queue->numbers.first, queue->numbers.end);
	return QUESTIONS;
}

/* Require an empty range.  etcd compares an empty range as if it were a key created at revision
 * 0. */
static void require_none(struct protobuf_out *request, const char *first, const char *end)
{
	etcd_wire_condition(request, first, end, TXN_EQUAL, 0);
}

void etcd_queue_require_free(const struct etcd_queue *queue, struct protobuf_out *request,
    int64_t revision)
{
	bool exclusive = queue->options->mode == LEASE_EXCLUSIVE;

	/* An exclusive lock has no peers: the range above them has every key, also our own once it
	 * exists.  Then require that no key is older than ours, not that the range is empty. */
	if (!exclusive)
		require_none(request, queue->all.first, queue->peers.first);
	if (exclusive && revision != INT64_MAX)
		etcd_wire_condition(request, queue->all.first, queue->all.end, TXN_GREATER,
		    revision - 1);
	else
		require_none(request, queue->peers.end, queue->all.end);
}

static size_t length_of(struct protobuf text)
{
	return (size_t)(text.end - text.at);
}

static bool begins_with(struct protobuf text, const char *word)
{
	size_t length = strlen(word);

	return length_of(text) >= length && memcmp(text.at, word, length) == 0;
}

/* Watch KEY.  If another program made it, its name may contain a NUL or be too long: then watch all
 * of RANGE. */
static void watch_key(struct etcd_place *place, const struct etcd_key *key,
    const struct etcd_span *range)
{
	protobuf_string(key->key, place->watch.first, sizeof place->watch.first);
	place->watch.end[0] = '\0';
	if (strlen(place->watch.first) != length_of(key->key))
		place->watch = *range;
}

static bool is_taken(struct protobuf numbers, unsigned int n)
{
	char name[ETCD_KEY];
	const char *slash;
	struct etcd_key key;

	while (etcd_wire_next(&numbers, &key)) {
		protobuf_string(key.key, name, sizeof name);
		slash = strrchr(name, '/');
		if (slash != NULL && strtoul(slash + 1, NULL, 10) == n)
			return true;
	}
	return false;
}

static unsigned int count_keys(struct protobuf keys)
{
	struct etcd_key key;
	unsigned int n = 0;

	while (etcd_wire_next(&keys, &key))
		n++;
	return n;
}

/* The first waiter waits for a free slot number.  Every other waiter waits until its predecessor
 * enters, which puts the predecessor's key again (etcd_key.h), or leaves.  So a number that becomes
 * free wakes one waiter. */
static void place_among_slots(const struct etcd_queue *queue, struct protobuf answer,
    struct etcd_place *place)
{
	unsigned int n = queue->options->slots;
	struct protobuf taken = etcd_wire_keys(answer, NUMBERS);
	bool first = count_keys(etcd_wire_keys(answer, SLOT_KEYS)) < n;
	struct etcd_key predecessor;

	place->blocked = !first || count_keys(taken) >= n;
	if (!place->blocked) {
		while (is_taken(taken, place->slot))
			place->slot++;
		return;
	}
	etcd_wire_first(answer, SLOT_KEYS, &predecessor);
	place->puts = !first && predecessor.version < 2;
	if (place->puts)
		watch_key(place, &predecessor, &queue->slots);
	else
		place->watch = first ? queue->numbers : queue->slots;
}

void etcd_queue_place(const struct etcd_queue *queue, struct protobuf answer,
    struct etcd_place *place)
{
	struct etcd_key below, key, holder;
	bool has_below = etcd_wire_first(answer, KEYS_BELOW, &below);
	bool has_key = etcd_wire_first(answer, KEYS_ABOVE, &key) || has_below;

	if (has_below && below.made >= key.made)
		key = below;
	*place = (struct etcd_place){.found = place->found};
	if (has_key) {
		place->blocked = true;
		watch_key(place, &key, &queue->all);
	} else if (queue->options->mode == LEASE_SLOTS) {
		place_among_slots(queue, answer, place);
	}
	if (!place->blocked)
		return;
	/* There is no OLDEST key if all that is in the way is a slot number that another program
	 * has put after our key. */
	if (etcd_wire_first(answer, OLDEST, &holder) || etcd_wire_first(answer, NUMBERS, &holder))
		etcd_queue_describe(&holder, place->who, sizeof place->who);
	else
		snprintf(place->who, sizeof place->who, "mode=%s",
		    lease_mode_name(queue->options->mode));
}

bool etcd_queue_holds(const struct etcd_key *key, bool first)
{
	return length_of(key->value) == 0 ? first : begins_with(key->value, holds_mark);
}

int etcd_queue_slot(const struct etcd_key *key)
{
	char value[350];
	const char *field;

	protobuf_string(key->value, value, sizeof value);
	field = strstr(value, " slot=");
	return field != NULL ? atoi(field + strlen(" slot=")) : -1;
}

bool etcd_queue_is_number(const struct etcd_queue *queue, const struct etcd_key *key)
{
	return begins_with(key->key, queue->numbers.first);
}

unsigned int etcd_queue_waiting(struct protobuf keys, int64_t revision)
{
	unsigned int n = 0;
	struct etcd_key key;

	for (bool first = true; etcd_wire_next(&keys, &key); first = false)
		if (key.made < revision && !etcd_queue_holds(&key, first))
			n++;
	return n;
}

void etcd_queue_describe(const struct etcd_key *key, char *text, size_t size)
{
	char name[ETCD_KEY], value[350];
	const char *fields = value;

	protobuf_string(key->value, value, sizeof value);
	if (value[0] == '\0') {
		protobuf_string(key->key, name, sizeof name);
		snprintf(text, size, "mode=exclusive note=another program's key %.200s", name);
		return;
	}
	if (begins_with(key->value, holds_mark))
		fields += strlen(holds_mark);
	snprintf(text, size, "mode=%s%s", strncmp(fields, "slots=", 6) == 0 ? "slots " : "",
	    fields);
}

void etcd_queue_value(const struct options *options, bool holds, int slot, char *value, size_t size)
{
	char holder[350], slots[24] = "", number[24] = "";

	if (options->mode == LEASE_SLOTS)
		snprintf(slots, sizeof slots, "=%u", options->slots);
	if (slot >= 0)
		snprintf(number, sizeof number, " slot=%d", slot);
	options_holder(options, holder, sizeof holder);
	snprintf(value, size, "%s%s%s%s %s", holds ? holds_mark : "",
	    lease_mode_name(options->mode), slots, number, holder);
}
