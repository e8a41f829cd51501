/* locksmith/etcd/etcdrpc.h - calls to an etcd cluster through the JSON gateway: endpoints in turn, login, errors. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDRPC_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDRPC_H

#include "locksmith/curl/buffer.h"
#include "locksmith/curl/transfer.h"
#include "locksmith/common/url.h"
#include "locksmith/common/failure.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum etcd_reply {
	ETCD_OK,
	ETCD_SILENT, /* no endpoint gave an answer that counts; the request may have been done */
	ETCD_GONE,   /* there is no such lease */
	ETCD_FATAL   /* no use in trying again: failure is filled in */
};

struct etcd {
	const struct url *url;
	char base[URL_HOSTS][300];
	char failed[URL_HOSTS][200]; /* each endpoint's failure in this call; "": none */
	bool away;		     /* an endpoint may answer later */
	unsigned int current; /* the endpoint that is asked first */
	struct transfer transfer;
	struct buffer answer;
	struct curl_slist *headers;
	struct login login;
	int64_t first_timeout, endpoint_timeout; /* with one endpoint, before and after the first answer; nanoseconds */
	unsigned int sent; /* requests of the last call; above 1, an earlier one may have been done */
	bool reached;      /* an endpoint has answered */
	const bool *abort; /* set by a watch: break the call off; may be NULL */
	struct failure failure;
};

/* Prepares, and logs in until that moment if a user is named. OK or FATAL. An endpoint may take first_timeout for
   its answer as long as none has answered, and endpoint_timeout then; nanoseconds. */
enum etcd_reply etcdrpc_open(struct etcd *e, const struct url *url, int64_t first_timeout, int64_t endpoint_timeout,
    int64_t until);

/* Posts body (whose reference is taken) to path. On OK *answer is the reply, to be given back with
   json_decref. Goes through the endpoints again and again until that moment. */
enum etcd_reply etcdrpc_call(
    struct etcd *e, const char *path, json_t *body, int64_t until, json_t **answer);

/* Takes the next endpoint. */
void etcdrpc_rotate(struct etcd *e);

void etcdrpc_close(struct etcd *e);

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
