/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "locksmith/common/loop.h"
#include "locksmith/s3/aws_settings.h"
#include "locksmith/s3/md5.h"
#include "locksmith/s3/s3_request.h"

#define LONGEST_ANSWER 65536
/* The characters that stay as they are in a URL that is signed; all others become %XX. */
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"

/* Append NAME to URL (SIZE bytes), with %XX where that is needed. */
static void add_path(char *url, size_t size, const char *name)
{
	size_t used = strlen(url);

	for (; *name != '\0' && used + 4 < size; name++)
		used += (size_t)snprintf(url + used, size - used,
		    strchr(PLAIN, *name) != NULL ? "%c" : "%%%02X", (unsigned char)*name);
}

/* Amazon's certificates cover one label before the dot: a bucket with dots in its name goes into
 * the path.  So does each bucket of another endpoint, whose BUCKET.HOST need not be in the DNS. */
static void set_url(struct s3_server *server, const struct aws_place *place, const char *name)
{
	bool path = place->endpoint[0] != '\0' || strchr(server->bucket, '.') != NULL;

	if (place->endpoint[0] != '\0')
		snprintf(server->url, sizeof server->url, "%s", place->endpoint);
	else
		snprintf(server->url, sizeof server->url, "https://%s%ss3.%s.amazonaws.com%s",
		    path ? "" : server->bucket, path ? "" : ".", place->region,
		    strncmp(place->region, "cn-", 3) == 0 ? ".cn" : "");
	if (path) {
		strcat(server->url, "/");
		add_path(server->url, sizeof server->url, server->bucket);
	}
	strcat(server->url, "/");
	add_path(server->url, sizeof server->url, name);
}

int s3_open(struct s3_server *server, const char *bucket, const char *name)
{
	struct aws_place place;
	char signing[96], authority[4096];
	CURL *easy;

	*server = (struct s3_server){.bucket = bucket, .body = {.limit = LONGEST_ANSWER}};
	if (aws_place_find(&place, &server->error) != 0 ||
	    aws_variable("SEMLOCK_CACERT", authority, sizeof authority, &server->error) != 0 ||
	    (authority[0] == '\0' &&
		aws_variable("AWS_CA_BUNDLE", authority, sizeof authority, &server->error) != 0))
		return -1;
	if (transfer_open(&server->transfer) != 0)
		return error_plain(&server->error, ERROR_SYSTEM, "libcurl does not start");
	easy = server->transfer.easy;
	snprintf(server->region, sizeof server->region, "%s", place.region);
	set_url(server, &place, name);
	snprintf(signing, sizeof signing, "aws:amz:%s:s3", place.region);
	curl_easy_setopt(easy, CURLOPT_URL, server->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, buffer_receive);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &server->body);
	transfer_trust(&server->transfer, authority[0] == '\0' ? NULL : authority);
	if (curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, signing) != CURLE_OK)
		return error_plain(&server->error, ERROR_UNAVAILABLE,
		    "this libcurl cannot sign requests for S3");
	return 0;
}

void s3_close(struct s3_server *server)
{
	transfer_close(&server->transfer);
	buffer_clear(&server->body);
	explicit_bzero(&server->login, sizeof server->login);
}

/* Add "NAME: VALUE" to *LIST, unless VALUE is "".  False: no memory. */
static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
	char line[sizeof((struct aws_login *)NULL)->session + 64];
	struct curl_slist *longer;

	if (value[0] == '\0')
		return true;
	snprintf(line, sizeof line, "%s: %s", name, value);
	longer = curl_slist_append(*list, line);
	if (longer != NULL)
		*list = longer;
	return longer != NULL;
}

/* The headers to sign besides the host and the time.  TEXT is what is written, or NULL.  libcurl
 * 7.88 does not send x-amz-content-sha256 on its own, but without this header a server refuses the
 * signature.  The contents are not signed: whoever could change them on their way could also change
 * the answers, which no S3 server signs.  A bucket with Object Lock requires a checksum.  It is
 * Content-MD5, because servers that know no other checksum refuse the newer headers. */
static struct curl_slist *signed_headers(const struct s3_server *server, const char *condition,
    const char *text)
{
	struct curl_slist *list = NULL;
	time_t now = (time_t)(clock_realtime() / SECOND + server->clock_ahead);
	char date[32] = "", checksum[MD5_BASE64] = "";
	struct tm tm;

	if (text != NULL)
		md5_base64(text, strlen(text), checksum);
	if (server->clock_ahead != 0 && gmtime_r(&now, &tm) != NULL)
		strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", &tm);
	if (add_header(&list, "x-amz-content-sha256", "UNSIGNED-PAYLOAD") &&
	    add_header(&list, "x-amz-security-token", server->login.session) &&
	    add_header(&list, "X-Amz-Date", date) && add_header(&list, "Content-MD5", checksum) &&
	    add_header(&list, "Content-Type", text != NULL ? "text/plain" : "")) {
		struct curl_slist *longer =
		    condition[0] == '\0' ? list : curl_slist_append(list, condition);

		if (longer != NULL)
			return longer;
	}
	curl_slist_free_all(list);
	return NULL;
}

/* The value of a header of the answer; "": it has none. */
static const char *header(const struct s3_server *server, const char *name)
{
	struct curl_header *found;

	return curl_easy_header(server->transfer.easy, name, 0, CURLH_HEADER, -1, &found) ==
	               CURLHE_OK
	           ? found->value
	           : "";
}

static int64_t date_of(const char *text)
{
	time_t seconds = curl_getdate(text, NULL);

	return seconds > 0 ? (int64_t)seconds : 0;
}

/* Copy the text of <Code> in an answer that is an error. */
static void error_code(const struct s3_server *server, char *code, size_t size)
{
	const char *at = strstr(buffer_text(&server->body), "<Code>");
	size_t length;

	code[0] = '\0';
	if (at == NULL)
		return;
	at += strlen("<Code>");
	length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.");
	snprintf(code, size, "%.*s", (int)length, at);
}

/* Copy the text of <Message>, which the server writes for people, from an answer that is an
 * error. */
static void error_message(const struct s3_server *server, char *message, size_t size)
{
	const char *at = strstr(buffer_text(&server->body), "<Message>");

	message[0] = '\0';
	if (at == NULL)
		return;
	at += strlen("<Message>");
	snprintf(message, size, "%.*s", (int)strcspn(at, "<"), at);
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* An answer that another try would not change. */
static enum s3_reply refuse(struct s3_server *server, long status, const char *code)
{
	static const char *const logins[] = {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId",
	    "SignatureDoesNotMatch", "TokenRefreshRequired", NULL};
	const char *region = header(server, "x-amz-bucket-region"), *colon;
	char message[200];

	error_message(server, message, sizeof message);
	colon = message[0] != '\0' ? ": " : "";
	if (strcmp(code, "NoSuchBucket") == 0)
		error_plain(&server->error, ERROR_CREATE, "there is no bucket %s", server->bucket);
	else if (status == 301 || status == 307 ||
		 strcmp(code, "AuthorizationHeaderMalformed") == 0)
		error_plain(&server->error, ERROR_UNAVAILABLE,
		    "the bucket is not in the region %s: set AWS_REGION%s%.60s", server->region,
		    region[0] != '\0' ? "=" : "", region);
	else if (status == 501)
		error_plain(&server->error, ERROR_UNAVAILABLE,
		    "the server cannot write with a condition, and so cannot lock: 501 %s", code);
	else if (strcmp(code, "AccessDenied") == 0)
		error_plain(&server->error, ERROR_PERMISSION,
		    "access denied: s3:GetObject and s3:PutObject are needed on the object, and "
		    "s3:ListBucket on the bucket");
	else if (status == 401 || status == 403 || is_one_of(code, logins))
		error_plain(&server->error, ERROR_PERMISSION, "the server refuses: %ld %s%s%s",
		    status, code, colon, message);
	else
		error_plain(&server->error, ERROR_UNAVAILABLE, "the server refuses: %ld %s%s%s",
		    status, code, colon, message);
	return S3_FATAL;
}

static enum s3_reply classify(struct s3_server *server, long status, const char *code)
{
	if (status == 200)
		return S3_DONE;
	if (status == 304)
		return S3_SAME;
	if (status == 404 && strcmp(code, "NoSuchBucket") != 0)
		return S3_ABSENT;
	/* 409 is AWS's answer to the later of two writes at the same time */
	if (status == 412 || (status == 409 && strstr(code, "Condition") != NULL))
		return S3_REFUSED;
	if (status != 409 && status != 429 && (status < 500 || status == 501) &&
	    strcmp(code, "RequestTimeout") != 0)
		return refuse(server, status, code);
	error_plain(&server->error, ERROR_AWAY, "the server says %ld %s", status, code);
	return S3_UNKNOWN;
}

/* Prepare the same request for another try, with another time or login.  Returns false if that
 * would not help. */
static bool mend(struct s3_server *server, const char *code)
{
	if (strcmp(code, "RequestTimeTooSkewed") == 0 || strcmp(code, "RequestExpired") == 0) {
		int64_t ahead = server->date - clock_realtime() / SECOND;

		if (server->date == 0 || ahead == server->clock_ahead)
			return false;
		server->clock_ahead = ahead;
		return true;
	}
	return strcmp(code, "ExpiredToken") == 0 && aws_login_forget();
}

/* Send the request once.  Returns the answer's HTTP status, or -1 with *REPLY set to what the
 * caller is to return. */
static long send_once(struct s3_server *server, const char *condition, const char *text,
    int64_t until, enum s3_reply *reply)
{
	CURL *easy = server->transfer.easy;
	struct curl_slist *headers;
	long status = -1, connects = 0;

	server->etag[0] = '\0';
	server->date = server->changed = 0;
	buffer_clear(&server->body);
	*reply = S3_FATAL;
	if (aws_login_find(&server->login, until, &server->error) != 0) {
		*reply = server->error.kind == ERROR_AWAY ? S3_UNKNOWN : S3_FATAL;
		return -1;
	}
	headers = signed_headers(server, condition, text);
	if (headers == NULL)
		return error_plain(&server->error, ERROR_SYSTEM, "out of memory");
	curl_easy_setopt(easy, CURLOPT_USERNAME, server->login.key);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, server->login.secret);
	if (text != NULL)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, text);
	else
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, text != NULL ? "PUT" : NULL);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	*reply = S3_UNKNOWN;
	/* if the object is too large to be a lock, its beginning is enough */
	if (transfer_run(&server->transfer, until, NULL) == CURLE_OK || server->body.overflow)
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	else
		error_plain(&server->error, ERROR_AWAY, "%s", server->transfer.error);
	if (text != NULL && curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK)
		server->connects += connects;
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	return status;
}

static enum s3_reply request(struct s3_server *server, const char *condition, const char *text,
    int64_t until)
{
	enum s3_reply reply;
	char code[64];

	for (int tries = 0;; tries++) {
		long status = send_once(server, condition, text, until, &reply);

		if (status < 0)
			return reply;
		server->date = date_of(header(server, "Date"));
		server->changed = date_of(header(server, "Last-Modified"));
		snprintf(server->etag, sizeof server->etag, "%s", header(server, "ETag"));
		error_code(server, code, sizeof code);
		if (tries > 0 || !mend(server, code))
			return classify(server, status, code);
	}
}

static enum s3_reply no_etag(struct s3_server *server)
{
	error_plain(&server->error, ERROR_UNAVAILABLE,
	    "the server gives no ETag, and so cannot lock");
	return S3_FATAL;
}

enum s3_reply s3_get(struct s3_server *server, const char *etag, int64_t until)
{
	char condition[S3_ETAG + 32] = "";
	enum s3_reply reply;

	if (etag[0] != '\0')
		snprintf(condition, sizeof condition, "If-None-Match: %s", etag);
	reply = request(server, condition, NULL, until);
	if (reply == S3_DONE && server->etag[0] == '\0')
		return no_etag(server);
	if (reply == S3_REFUSED) /* a GET whose condition fails gets 304 */
		reply = refuse(server, 412, "");
	return reply;
}

enum s3_reply s3_put(struct s3_server *server, const char *condition, const char *text,
    int64_t until)
{
	enum s3_reply reply = request(server, condition, text, until);

	if (reply == S3_ABSENT) /* AWS's answer to If-Match if there is no object */
		return S3_REFUSED;
	if (reply == S3_SAME || (reply == S3_DONE && server->etag[0] == '\0'))
		return no_etag(server);
	return reply;
}
