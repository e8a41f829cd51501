#include <config.h>

#include "locksmith/etcd/etcdqueue.h"

#include "locksmith/etcd/base64.h"
#include "locksmith/common/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct entry {
	enum mode mode;
	unsigned int slots;
	int64_t revision;
	const char *key; /* base64 */
	char value[350];
};

int64_t etcdqueue_int(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (json_is_string(v))
		return strtoll(json_string_value(v), NULL, 10);
	return json_is_integer(v) ? json_integer_value(v) : 0;
}

/* What we do not know, etcdctl's empty value for one, is taken for exclusive: it excludes all. */
static void read_mode(struct entry *e)
{
	if (strncmp(e->value, "shared ", 7) == 0)
		e->mode = MODE_SHARED;
	if (strncmp(e->value, "slots=", 6) == 0) {
		e->mode = MODE_SLOTS;
		e->slots = (unsigned int)strtoul(e->value + 6, NULL, 10);
	}
}

static void read_entry(const json_t *kv, struct entry *e)
{
	const char *value = json_string_value(json_object_get(kv, "value"));
	const char *key = json_string_value(json_object_get(kv, "key"));

	*e = (struct entry){
	    .mode = MODE_EXCLUSIVE, .revision = etcdqueue_int(kv, "create_revision")};
	e->key = key != NULL ? key : "";
	if (value == NULL || base64_decode(value, e->value, sizeof e->value) != 0)
		e->value[0] = '\0';
	read_mode(e);
}

static bool has_key(const json_t *kvs, int64_t lease)
{
	for (size_t i = 0; i < json_array_size(kvs); i++)
		if (etcdqueue_int(json_array_get(kvs, i), "lease") == lease)
			return true;
	return false;
}

/* False: its holder's key is there; or it is nothing that one of ours has made. */
static bool read_orphan(
    const json_t *kvs, const json_t *kv, struct etcdqueue_orphan *o, struct entry *e)
{
	const char *key = json_string_value(json_object_get(kv, "key"));
	const char *value = json_string_value(json_object_get(kv, "value"));
	char text[700], *rest;

	if (key == NULL || strlen(key) >= sizeof o->mark || value == NULL ||
	    strlen(value) >= sizeof o->value || base64_decode(value, text, sizeof text) != 0)
		return false;
	*o = (struct etcdqueue_orphan){.revision = etcdqueue_int(kv, "mod_revision"),
	    .lapses = etcdqueue_int(kv, "lease") != 0,
	    .owner = (int64_t)strtoull(text, &rest, 16)};
	o->seconds = strtoll(rest, &rest, 10);
	if (*rest != ' ' || o->seconds <= 0 || o->seconds > LONGEST_SECONDS || has_key(kvs, o->owner))
		return false;
	strcpy(o->mark, key);
	strcpy(o->value, value);
	*e = (struct entry){.mode = MODE_EXCLUSIVE, .key = key};
	snprintf(e->value, sizeof e->value, "%s", rest + 1);
	read_mode(e);
	return true;
}

static void describe(const struct entry *e, char *text, size_t size)
{
	char key[600];

	if (e->value[0] != '\0') {
		snprintf(text, size, "mode=%s%s", e->mode == MODE_SLOTS ? "slots " : "", e->value);
		return;
	}
	if (base64_decode(e->key, key, sizeof key) != 0)
		key[0] = '\0';
	snprintf(text, size, "mode=exclusive note=another program's key %.200s", key);
}

void etcdqueue_place(const json_t *kvs, enum mode mode, unsigned int slots, int64_t own,
    struct etcdqueue_place *place)
{
	struct entry e;

	*place = (struct etcdqueue_place){.found = false};
	for (size_t i = 0; i < json_array_size(kvs); i++) {
		read_entry(json_array_get(kvs, i), &e);
		if (e.revision == own)
			place->found = true;
		if (e.revision >= own)
			break;
		if (e.mode == mode && mode == MODE_SHARED)
			continue;
		if (place->who[0] == '\0')
			describe(&e, place->who, sizeof place->who);
		snprintf(place->blocker, sizeof place->blocker, "%s", e.key);
		if (e.mode == MODE_SLOTS && mode == MODE_SLOTS)
			place->fellows++;
		else
			place->blocked = true;
	}
	if (mode == MODE_SLOTS && place->fellows >= slots)
		place->blocked = true;
}

/* One of them is in the way. */
static void blocked_by(
    struct etcdqueue_place *place, const struct etcdqueue_orphan *o, const struct entry *e)
{
	if (place->orphaned && place->orphan.lapses <= o->lapses)
		return; /* first those that do not go by themselves */
	place->orphaned = true;
	place->orphan = *o;
	snprintf(place->blocker, sizeof place->blocker, "%s", o->mark);
	describe(e, place->who, sizeof place->who);
}

void etcdqueue_orphans(const json_t *kvs, const json_t *marks, enum mode mode, unsigned int slots,
    struct etcdqueue_place *place)
{
	struct etcdqueue_orphan o;
	bool blocked = false;
	struct entry e;

	if (place->blocked)
		return; /* when that goes, we look again */
	for (size_t i = 0; i < json_array_size(marks); i++) {
		if (!read_orphan(kvs, json_array_get(marks, i), &o, &e) ||
		    (e.mode == MODE_SHARED && mode == MODE_SHARED))
			continue;
		if (e.mode == MODE_SLOTS && mode == MODE_SLOTS)
			place->fellows++;
		else
			blocked = true;
		blocked_by(place, &o, &e);
	}
	place->blocked = blocked || (mode == MODE_SLOTS && place->fellows >= slots);
	place->orphaned = place->orphaned && place->blocked;
}

bool etcdqueue_orphan(
    const json_t *kvs, const json_t *marks, size_t i, char *text, size_t size)
{
	struct etcdqueue_orphan o;
	struct entry e;

	if (!read_orphan(kvs, json_array_get(marks, i), &o, &e))
		return false;
	describe(&e, text, size);
	return true;
}

bool etcdqueue_holds(const json_t *kvs, size_t i, char *text, size_t size)
{
	struct etcdqueue_place place;
	struct entry e;

	read_entry(json_array_get(kvs, i), &e);
	describe(&e, text, size);
	etcdqueue_place(kvs, e.mode, e.slots, e.revision, &place);
	return !place.blocked;
}

void etcdqueue_value(const struct options *o, char *value, size_t size)
{
	char host[65], mode[32];

	if (gethostname(host, sizeof host) != 0)
		host[0] = '\0';
	host[sizeof host - 1] = '\0';
	if (o->mode == MODE_SLOTS)
		snprintf(mode, sizeof mode, "slots=%u", o->slots);
	else
		snprintf(mode, sizeof mode, "%s", o->mode == MODE_SHARED ? "shared" : "exclusive");
	snprintf(value, size, "%s pid=%ld host=%s since=%lld%s%.200s", mode, o->pid, host,
	    (long long)time(NULL), o->note[0] != '\0' ? " note=" : "", o->note);
}
