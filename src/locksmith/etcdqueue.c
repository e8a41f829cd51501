#include <config.h>

#include "locksmith/etcdqueue.h"

#include "locksmith/base64.h"

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

static void read_entry(const json_t *kv, struct entry *e)
{
	const char *value = json_string_value(json_object_get(kv, "value"));
	const char *key = json_string_value(json_object_get(kv, "key"));

	*e = (struct entry){
	    .mode = MODE_EXCLUSIVE, .revision = etcdqueue_int(kv, "create_revision")};
	e->key = key != NULL ? key : "";
	if (value == NULL || base64_decode(value, e->value, sizeof e->value) != 0)
		e->value[0] = '\0';
	/* What we do not know, etcdctl's empty value for one, is taken for exclusive: it excludes
	 * all. */
	if (strncmp(e->value, "shared ", 7) == 0)
		e->mode = MODE_SHARED;
	if (strncmp(e->value, "slots=", 6) == 0) {
		e->mode = MODE_SLOTS;
		e->slots = (unsigned int)strtoul(e->value + 6, NULL, 10);
	}
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
	size_t fellows = 0;
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
			fellows++;
		else
			place->blocked = true;
	}
	if (mode == MODE_SLOTS && fellows >= slots)
		place->blocked = true;
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
