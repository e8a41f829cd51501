#include <config.h>

#include "locksmith/etcd/http.h"

#include "locksmith/etcd/etcdctl.h"

int http_open(struct transfer *t, struct buffer *answer)
{
	const char *ca = etcdctl_variable("CACERT");
	const char *cert = etcdctl_variable("CERT"), *key = etcdctl_variable("KEY");
	CURL *c;

	if (transfer_open(t) != 0)
		return -1;
	c = t->easy;
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	/* etcd's plain listeners take HTTP/2 for gRPC; the gateway speaks 1.1. */
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, buffer_receive);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	if (ca != NULL)
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
	if (cert != NULL)
		curl_easy_setopt(c, CURLOPT_SSLCERT, cert);
	if (key != NULL)
		curl_easy_setopt(c, CURLOPT_SSLKEY, key);
	return 0;
}

void http_prepare(struct transfer *t, const char *url, struct curl_slist *headers, const char *body)
{
	curl_easy_setopt(t->easy, CURLOPT_URL, url);
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, body);
}

int http_post(struct transfer *t, struct buffer *answer, int64_t until, const bool *abort)
{
	long status = 0;

	buffer_clear(answer);
	if (transfer_run(t, until, abort) != CURLE_OK)
		return 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}
