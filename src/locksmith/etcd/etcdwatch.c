/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcdwatch.h"

#include <string.h>

#define LONGEST_MESSAGE ((size_t)1024 * 1024)

/* The numbers of the fields: etcd's rpc.proto and kv.proto. */
enum watch_request { CREATE = 1, WATCH_KEY = 1, WATCH_END = 2, WATCH_SINCE = 3, WATCH_FILTER = 5 };
enum watch_filter { NO_PUT = 0 };
enum watch_response { WATCH_CANCELED = 4, WATCH_EVENT = 11 };
enum event { EVENT_TYPE = 1, DELETED = 1 };

static void watch_hear(void *data, struct pb message)
{
	struct etcdwatch *w = data;
	struct pb_field field;

	w->cancelled = w->cancelled || !pb_whole(message) || pb_number(message, WATCH_CANCELED) != 0;
	w->stirred = w->stirred || w->cancelled;
	while (pb_next(&message, &field)) {
		if (field.number != WATCH_EVENT)
			continue;
		w->stirred = true;
		if (pb_number(field.bytes, EVENT_TYPE) == DELETED)
			w->deleted = true;
	}
}

void etcdwatch_start(struct etcdwatch *w, struct etcd *e, const struct etcdqueue_span *keys,
    bool puts, int64_t revision)
{
	struct pb_out request;
	size_t create;

	etcdwatch_stop(w);
	w->endpoint = e->current;
	strcpy(w->key, keys->first);
	pb_start(&request);
	create = pb_open(&request, CREATE);
	pb_text(&request, WATCH_KEY, keys->first);
	pb_text(&request, WATCH_END, keys->end);
	pb_int(&request, WATCH_SINCE, revision);
	if (!puts)
		pb_int(&request, WATCH_FILTER, NO_PUT);
	pb_close(&request, create);
	if (grpc_open(&w->call, LONGEST_MESSAGE) != 0)
		return;
	etcdrpc_prepare(e, &w->call, ETCD_WATCH, &request);
	w->call.hear = watch_hear;
	w->call.data = w;
	curl_easy_setopt(
	    w->call.transfer.easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(e->endpoint_timeout / 1000000));
	grpc_start(&w->call);
}

bool etcdwatch_over(const struct etcdwatch *w)
{
	return w->stirred || w->call.transfer.easy == NULL || w->call.transfer.ended;
}

void etcdwatch_stop(struct etcdwatch *w)
{
	grpc_close(&w->call);
	*w = (struct etcdwatch){.deleted = false};
}
