/* What etcd answers: the keys of a lock, and the stream of a watch, which hears the same however it
 * is cut. */
#include <config.h>

#include "fuzz.h"
#include "locksmith/etcd/etcdqueue.c"
#include "locksmith/etcd/etcdwatch.c" /* for the stream's bytes, without a stream */

static void places(const json_t *responses)
{
	static const enum lease_mode modes[] = {LEASE_EXCLUSIVE, LEASE_SHARED, LEASE_SLOTS};
	struct etcdqueue_place place = {.found = true};
	struct etcdqueue_keys keys, marks;

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct options o = {.mode = modes[i], .slots = 2};

		etcdqueue_keys(&keys, "L", modes[i]);
		etcdqueue_keys(&marks, "L#held", modes[i]);
		etcdqueue_place(responses, &keys, &marks, &o, &place);
		MUST(place.found);
		MUST(strlen(place.watch.first) < sizeof place.watch.first);
		MUST(strlen(place.who) < sizeof place.who);
		/* Somebody is in the way, or there is a number. */
		MUST(place.blocked ? place.who[0] != '\0' : place.slot < 2);
		etcdqueue_place(NULL, &keys, &marks, &o, &place);
		MUST(!place.blocked);
	}
}

static void pipe_holders(const json_t *kvs, const json_t *marks)
{
	char text[400];

	for (size_t i = 0; i < json_array_size(kvs); i++) {
		const json_t *kv = json_array_get(kvs, i);

		etcdqueue_holds(kvs, marks, i);
		MUST(etcdqueue_pair(kvs, kv));
		etcdqueue_is_mark(kv);
		etcdqueue_describe(kv, text, sizeof text);
		MUST(strlen(text) < sizeof text && strncmp(text, "mode=", 5) == 0);
	}
}

static void answer(const char *text)
{
	json_t *json = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	const json_t *kvs = json_object_get(json, "kvs");

	etcdqueue_int(json, "count");
	places(json_object_get(json, "responses"));
	pipe_holders(kvs, json_object_get(json, "marks"));
	json_decref(json);
}

/* What a watch has heard once it has been given all of TEXT, SIZE bytes at a time. */
static int heard(char *text, size_t length, size_t size)
{
	struct etcdwatch watch = {.text.limit = LONGEST_LINE};
	int result;

	for (size_t at = 0; at < length; at += size)
		MUST(watch_receive(text + at, 1, size < length - at ? size : length - at, &watch) != 0);
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
