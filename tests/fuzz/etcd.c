/* SPDX-License-Identifier: MIT */
/* etcd's answers: the keys of a lock, and the stream of a watch, whose events do not depend on how
 * the stream is cut. */
#include <config.h>

#include "fuzz.h"
#include "locksmith/etcd/etcd_queue.h"
#include "locksmith/etcd/etcd_rpc.c" /* for its parser of the stream: no connection here */
#include "locksmith/etcd/grpc.c"

static void places(struct protobuf answer)
{
	static const enum lease_mode modes[] = {LEASE_EXCLUSIVE, LEASE_SHARED, LEASE_SLOTS};
	struct etcd_place place = {.found = true};
	struct etcd_queue queue;

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct options o = {.mode = modes[i], .slots = 2};

		etcd_queue_init(&queue, "L", &o);
		etcd_queue_place(&queue, answer, &place);
		MUST(place.found);
		MUST(strlen(place.watch.first) < sizeof place.watch.first);
		MUST(strlen(place.who) < sizeof place.who);
		/* A blocked place names a holder; any other has a slot number. */
		MUST(place.blocked ? place.who[0] != '\0' : place.slot < 2);
		etcd_queue_place(&queue, (struct protobuf){NULL, NULL}, &place);
		MUST(!place.blocked);
	}
}

static void keys_of_all(struct protobuf keys)
{
	static const struct options o = {.mode = LEASE_SLOTS, .slots = 2};
	struct etcd_queue queue;
	struct protobuf rest = keys;
	struct etcd_key key;
	char text[600];

	etcd_queue_init(&queue, "L", &o);
	for (bool first = true; etcd_wire_next(&rest, &key); first = false) {
		etcd_queue_holds(&key, first);
		etcd_queue_is_number(&queue, &key);
		etcd_queue_describe(&key, text, sizeof text);
		MUST(strlen(text) < sizeof text && strncmp(text, "mode=", 5) == 0);
	}
	etcd_queue_waiting(keys, 7);
}

static void answer(struct protobuf message)
{
	struct protobuf_field field;
	struct protobuf rest = message;

	while (protobuf_next(&rest, &field))
		MUST(field.number > 0 && rest.at <= message.end &&
		     (field.bytes.at == NULL ||
			 (field.bytes.at >= message.at && field.bytes.end <= rest.at)));
	MUST(protobuf_whole(message) == (rest.at == message.end));
	places(message);
	keys_of_all(message);
	keys_of_all(etcd_wire_keys(message, 0));
	places(etcd_wire_inner(message, 0));
}

/* The events of a watch that has been given TEXT, SIZE bytes at a time, up to the first refused
 * message. */
static int heard(char *text, size_t length, size_t size)
{
	struct etcd_watch watch = {
	    .call = {.received.limit = LONGEST_EVENT, .hear = watch_hear, .data = &watch}};
	bool refused = false;
	int result;

	for (size_t at = 0; at < length && !refused; at += size)
		refused = receive(text + at, 1, size < length - at ? size : length - at,
			      &watch.call) == 0;
	result = refused * 4 + watch.deleted * 2 + watch.event;
	MUST(watch.event || !watch.deleted);
	buffer_clear(&watch.call.received);
	return result;
}

/* The bytes as the answer of a keepalive, and as the value of each header. */
static void keepalive(char *text, size_t size)
{
	static const char *const names[] = {"grpc-status: ", "grpc-message: "};
	struct grpc_call call = {.received.limit = LONGEST_EVENT,
	    .stream = true,
	    .status = GRPC_NONE,
	    .transfer = {.ended = true}};
	char header[600];
	struct protobuf message;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t name = strlen(names[i]),
		       length = size < sizeof header - name ? size : sizeof header - name;

		memcpy(header, names[i], name);
		memcpy(header + name, text, length);
		MUST(receive_header(header, 1, name + length, &call) == name + length);
		MUST(call.status >= GRPC_NONE && strlen(call.message) < sizeof call.message);
	}
	call.status = GRPC_NONE;
	receive(text, 1, size, &call);
	MUST(call.answered || !grpc_answer(&call, &message));
	buffer_clear(&call.received);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Without the terminating zero of fuzz_text: the sanitizers see a read beyond the end. */
	char *text = malloc(size > 0 ? size : 1);

	if (text == NULL)
		exit(EXIT_FAILURE);
	if (size > 0)
		memcpy(text, data, size);
	answer((struct protobuf){(unsigned char *)text, (unsigned char *)text + size});
	if (size > PROTOBUF_PREFIX)
		answer((struct protobuf){(unsigned char *)text + PROTOBUF_PREFIX,
		    (unsigned char *)text + size});
	if (size > 0) {
		MUST(heard(text, size, size) == heard(text, size, 3));
		keepalive(text, size);
	}
	free(text);
	return 0;
}
