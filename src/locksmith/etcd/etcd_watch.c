/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcd_watch.h"

#include <string.h>

#define LONGEST_MESSAGE ((size_t)1024 * 1024)

/* The numbers of the fields: etcd's rpc.proto and kv.proto. */
enum watch_request { CREATE = 1, WATCH_KEY = 1, WATCH_END = 2, WATCH_SINCE = 3, WATCH_FILTER = 5 };
enum watch_filter { NO_PUT = 0 };
enum watch_response { WATCH_CANCELED = 4, WATCH_EVENT = 11 };
enum event { EVENT_TYPE = 1, DELETED = 1 };

static void watch_hear(void *data, struct pb message)
{
	struct etcd_watch *watch = data;
	struct pb_field field;

	watch->cancelled = watch->cancelled || !pb_whole(message) || pb_number(message, WATCH_CANCELED) != 0;
	watch->stirred = watch->stirred || watch->cancelled;
	while (pb_next(&message, &field)) {
		if (field.number != WATCH_EVENT)
			continue;
		watch->stirred = true;
		if (pb_number(field.bytes, EVENT_TYPE) == DELETED)
			watch->deleted = true;
	}
}

void etcd_watch_start(struct etcd_watch *watch, struct etcd_rpc *rpc, const struct etcd_span *keys,
    bool puts, int64_t revision)
{
	struct pb_out request;
	size_t create;

	etcd_watch_stop(watch);
	watch->endpoint = rpc->current;
	strcpy(watch->key, keys->first);
	pb_start(&request);
	create = pb_open(&request, CREATE);
	pb_text(&request, WATCH_KEY, keys->first);
	pb_text(&request, WATCH_END, keys->end);
	pb_int(&request, WATCH_SINCE, revision);
	if (!puts)
		pb_int(&request, WATCH_FILTER, NO_PUT);
	pb_close(&request, create);
	if (grpc_open(&watch->call, LONGEST_MESSAGE) != 0)
		return;
	etcd_rpc_prepare(rpc, &watch->call, ETCD_WATCH, &request);
	watch->call.hear = watch_hear;
	watch->call.data = watch;
	curl_easy_setopt(
	    watch->call.transfer.easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(rpc->endpoint_timeout / 1000000));
	grpc_start(&watch->call);
}

bool etcd_watch_over(const struct etcd_watch *watch)
{
	return watch->stirred || watch->call.transfer.easy == NULL || watch->call.transfer.ended;
}

void etcd_watch_stop(struct etcd_watch *watch)
{
	grpc_close(&watch->call);
	*watch = (struct etcd_watch){.deleted = false};
}
