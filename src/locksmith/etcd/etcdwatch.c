#include <config.h>

#include "locksmith/etcd/etcdwatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_LINE ((size_t)1024 * 1024)

static void watch_line(struct etcdwatch *w, const char *text)
{
	json_t *message = json_loads(text, 0, NULL);
	const json_t *result = json_object_get(message, "result");
	const json_t *events = json_object_get(result, "events");

	for (size_t i = 0; i < json_array_size(events); i++) {
		const char *type =
		    json_string_value(json_object_get(json_array_get(events, i), "type"));

		w->stirred = true;
		if (type != NULL && strcmp(type, "DELETE") == 0)
			w->deleted = true;
	}
	/* An error, a cancelled watch (compacted history), or no JSON: the caller has to look. */
	if (result == NULL || json_is_true(json_object_get(result, "canceled")))
		w->stirred = true;
	json_decref(message);
}

static size_t watch_receive(char *bytes, size_t one, size_t size, void *data)
{
	struct etcdwatch *w = data;
	const char *from = bytes, *end = bytes + one * size, *newline;

	while ((newline = memchr(from, '\n', (size_t)(end - from))) != NULL) {
		if (buffer_add(&w->text, from, (size_t)(newline - from)) != 0)
			return 0;
		watch_line(w, buffer_text(&w->text));
		buffer_clear(&w->text);
		from = newline + 1;
	}
	return buffer_add(&w->text, from, (size_t)(end - from)) == 0 ? one * size : 0;
}

/* A new login replaces the headers of the calls, while the stream still uses its own. */
static struct curl_slist *copy_headers(const struct curl_slist *from)
{
	struct curl_slist *to = NULL;

	for (; from != NULL; from = from->next)
		to = curl_slist_append(to, from->data);
	return to;
}

int etcdwatch_start(struct etcdwatch *w, struct etcd *e, const struct etcdqueue_span *keys,
    bool puts, int64_t revision)
{
	char number[24], url[400], *text;
	json_t *body, *filters;

	etcdwatch_stop(w);
	w->text.limit = LONGEST_LINE;
	w->endpoint = e->current;
	strcpy(w->key, keys->first);
	snprintf(number, sizeof number, "%" PRId64, revision);
	snprintf(url, sizeof url, "%s/v3/watch", e->base[e->current]);
	filters = puts ? json_array() : json_pack("[s]", "NOPUT");
	body = json_pack("{s:{s:s, s:s, s:s, s:o}}", "create_request", "key", keys->first,
	    "range_end", keys->end, "start_revision", number, "filters", filters);
	text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	if (text == NULL || http_open(&w->transfer, &w->text) != 0) {
		free(text);
		return -1;
	}
	w->headers = copy_headers(e->headers);
	http_prepare(&w->transfer, url, w->headers, text);
	free(text);
	curl_easy_setopt(w->transfer.easy, CURLOPT_WRITEFUNCTION, watch_receive);
	curl_easy_setopt(w->transfer.easy, CURLOPT_WRITEDATA, w);
	/* The stream may be silent for hours: keepalives show that the connection is lost. */
	curl_easy_setopt(w->transfer.easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(w->transfer.easy, CURLOPT_TCP_KEEPIDLE, 15L);
	curl_easy_setopt(w->transfer.easy, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(
	    w->transfer.easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(e->endpoint_timeout / 1000000));
	transfer_start(&w->transfer);
	return 0;
}

bool etcdwatch_over(const struct etcdwatch *w)
{
	return w->stirred || w->transfer.easy == NULL || w->transfer.ended;
}

void etcdwatch_stop(struct etcdwatch *w)
{
	transfer_close(&w->transfer);
	buffer_clear(&w->text);
	curl_slist_free_all(w->headers);
	*w = (struct etcdwatch){.deleted = false};
}
