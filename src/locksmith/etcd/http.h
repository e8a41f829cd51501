/* locksmith/etcd/http.h - one POST of JSON to one server. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_HTTP_H
#define SEMLOCK_LOCKSMITH_ETCD_HTTP_H

#include "locksmith/curl/buffer.h"
#include "locksmith/curl/transfer.h"

#include <stdint.h>

/* Opens t for posts whose answers go into *answer. 0 or -1 (no memory). */
int http_open(struct transfer *t, struct buffer *answer);

/* Sets where to and what; libcurl keeps a copy of both. headers must stay until the transfer is
 * over. */
void http_prepare(
    struct transfer *t, const char *url, struct curl_slist *headers, const char *body);

/* Posts what was prepared. The HTTP status, or 0 if there was no answer until then or *abort was
   set (NULL: nothing sets it); t->error says why. */
int http_post(struct transfer *t, struct buffer *answer, int64_t until, const bool *abort);

#endif
