/* What etcd answers: the keys of a lock, and the stream of a watch.  Of those who are seen to
 * hold the lock, no two exclude each other; and a watch hears the same however it is cut. */
#include <config.h>

#include "fuzz.h"
#include "locksmith/etcd/etcdqueue.c" /* for what it takes a key's mode to be */
#include "locksmith/etcd/etcdwatch.c" /* for the stream's bytes, without a stream */

static void places(const json_t *kvs, const json_t *marks)
{
	static const enum mode modes[] = {MODE_EXCLUSIVE, MODE_SHARED, MODE_SLOTS};
	static const int64_t own[] = {0, 1, 7, INT64_MAX};
	struct etcdqueue_place place;

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		for (size_t j = 0; j < sizeof own / sizeof *own; j++) {
			etcdqueue_place(kvs, modes[i], 2, own[j], &place);
			MUST(strlen(place.blocker) < sizeof place.blocker);
			MUST(strlen(place.who) < sizeof place.who);
			etcdqueue_orphans(kvs, marks, modes[i], 2, &place);
			MUST(strlen(place.blocker) < sizeof place.blocker);
			MUST(place.blocked || !place.orphaned);
			MUST(!place.orphaned || place.orphan.seconds > 0);
			/* The first in the queue is blocked by nobody, the rest by somebody. */
			MUST(!place.blocked || own[j] != 0 || place.who[0] != '\0');
		}
	etcdqueue_place(NULL, MODE_EXCLUSIVE, 0, INT64_MAX, &place);
	MUST(!place.blocked);
}

/* In the order of creation, as etcd gives them. */
static bool ascending(const json_t *kvs)
{
	for (size_t i = 1; i < json_array_size(kvs); i++)
		if (etcdqueue_int(json_array_get(kvs, i - 1), "create_revision") >=
		    etcdqueue_int(json_array_get(kvs, i), "create_revision"))
			return false;
	return true;
}

static void holders(const json_t *kvs)
{
	size_t exclusive = 0, shared = 0, slots = 0;
	struct entry entry;
	char text[400];

	for (size_t i = 0; i < json_array_size(kvs); i++) {
		bool holds = etcdqueue_holds(kvs, i, text, sizeof text);

		MUST(strlen(text) < sizeof text);
		read_entry(json_array_get(kvs, i), &entry);
		exclusive += holds && entry.mode == MODE_EXCLUSIVE;
		shared += holds && entry.mode == MODE_SHARED;
		slots += holds && entry.mode == MODE_SLOTS;
	}
	if (ascending(kvs))
		MUST(exclusive + (shared > 0) + (slots > 0) <= 1);
}

static void answer(const char *text)
{
	json_t *json = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	const json_t *kvs = json_object_get(json, "kvs");

	etcdqueue_int(json, "count");
	places(kvs, json_object_get(json, "marks"));
	places(NULL, kvs);
	holders(kvs);
	json_decref(json);
}

/* What a watch has heard once it has been given all of TEXT, SIZE bytes at a time. */
static int heard(char *text, size_t length, size_t size)
{
	struct etcdwatch watch = {.text.limit = LONGEST_LINE};
	int result;

	for (size_t at = 0; at < length; at += size)
		MUST(receive(text + at, 1, size < length - at ? size : length - at, &watch) != 0);
	result = watch.deleted * 2 + watch.stirred;
	MUST(watch.stirred || !watch.deleted);
	buffer_clear(&watch.text);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	answer(text);
	if (size > 0)
		MUST(heard(text, size, size) == heard(text, size, 3));
	free(text);
	return 0;
}
