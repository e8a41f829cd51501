/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "locksmith/common/loop.h"
#include "locksmith/curl/buffer.h"
#include "locksmith/curl/transfer.h"
#include "locksmith/s3/aws_login.h"
#include "locksmith/s3/aws_process.h"
#include "locksmith/s3/aws_settings.h"

/* Outside of Amazon's machines there is no instance metadata service, and nothing answers. */
#define INSTANCE_TIMEOUT SECOND
#define CONTAINER_TIMEOUT (5 * SECOND)
#define RENEW_BEFORE 300 /* fetch the next login this many seconds before a role's login lapses */
#define LEAST_RENEWAL 60 /* at least this many seconds between two requests for a login */
#define LONGEST_ANSWER 16384
#define CONTAINER "http://169.254.170.2"
#define INSTANCE "http://169.254.169.254"
#define ROLES "/latest/meta-data/iam/security-credentials/"

static struct {
	struct aws_login login;
	bool valid;
	int64_t again; /* the moment to fetch the next one */
} role;

struct fetch {
	const char *method; /* "GET", "PUT" */
	const char *header; /* "": none */
	int64_t until;
	bool connected; /* the service exists, whether or not it answers */
	struct buffer answer;
};

/* Fetch URL.  Returns the HTTP status of the answer, or -1 with ERROR filled: ERROR_AWAY: there was
 * no answer; ERROR_SYSTEM. */
static long fetch(struct fetch *fetch, const char *url, struct error *error)
{
	struct transfer transfer;
	struct curl_slist *headers = NULL;
	curl_off_t connected = 0;
	long status = -1;

	fetch->connected = false;
	buffer_clear(&fetch->answer);
	fetch->answer.limit = LONGEST_ANSWER;
	if (transfer_open(&transfer) != 0)
		return error_plain(error, ERROR_SYSTEM, "libcurl does not start");
	if (fetch->header[0] != '\0')
		headers = curl_slist_append(NULL, fetch->header);
	curl_easy_setopt(transfer.easy, CURLOPT_URL, url);
	curl_easy_setopt(transfer.easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(transfer.easy, CURLOPT_CUSTOMREQUEST, fetch->method);
	curl_easy_setopt(transfer.easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(transfer.easy, CURLOPT_WRITEFUNCTION, buffer_receive);
	curl_easy_setopt(transfer.easy, CURLOPT_WRITEDATA, &fetch->answer);
	if (transfer_run(&transfer, fetch->until, NULL) == CURLE_OK)
		curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	else
		error_plain(error, ERROR_AWAY, "no login from %.100s: %s", url, transfer.error);
	curl_easy_getinfo(transfer.easy, CURLINFO_CONNECT_TIME_T, &connected);
	fetch->connected =
	    status >= 0 || connected > 0; /* CONNECT_TIME is also 0 for a reused connection */
	transfer_close(&transfer);
	curl_slist_free_all(headers);
	return status;
}

/* Copy the member NAME, a string, of the JSON object TEXT into VALUE (SIZE bytes).  Returns false
 * if TEXT has no member NAME, or its value is empty, does not fit, or has other than plain
 * characters. */
static bool json_member(const char *text, const char *name, char *value, size_t size)
{
	char quoted[32];
	size_t used = 0;

	snprintf(quoted, sizeof quoted, "\"%s\"", name);
	text = strstr(text, quoted);
	if (text == NULL)
		return false;
	text += strlen(quoted);
	text += strspn(text, " \t\r\n:");
	if (*text++ != '"')
		return false;
	for (; *text != '"'; text++) {
		if (*text == '\\' && text[1] == '/')
			text++;
		if ((unsigned char)*text <= ' ' || *text == '\\' || *text == 0x7f ||
		    used + 1 >= size)
			return false;
		value[used++] = *text;
	}
	value[used] = '\0';
	return used > 0;
}

/* When to fetch the login that follows the one in TEXT. */
static int64_t next_fetch(const char *text)
{
	char expiration[40];
	struct tm tm = {.tm_isdst = 0};
	int64_t left = LEAST_RENEWAL;

	if (json_member(text, "Expiration", expiration, sizeof expiration) &&
	    strptime(expiration, "%Y-%m-%dT%H:%M:%S", &tm) != NULL)
		left = (int64_t)timegm(&tm) - clock_realtime() / SECOND - RENEW_BEFORE;
	if (left > LONGEST_SECONDS)
		left = LONGEST_SECONDS;
	return clock_boottime() + (left > LEAST_RENEWAL ? left : LEAST_RENEWAL) * SECOND;
}

/* Take a role's login out of TEXT, the answer of the service at URL. */
static int take_role(const char *text, const char *url, struct error *error)
{
	struct aws_login found = {.key = ""};

	if (!json_member(text, "AccessKeyId", found.key, sizeof found.key) ||
	    !json_member(text, "SecretAccessKey", found.secret, sizeof found.secret) ||
	    !json_member(text, "Token", found.session, sizeof found.session))
		return error_plain(error, ERROR_PERMISSION, "there is no login in the answer of %s",
		    url);
	role.login = found;
	role.valid = true;
	role.again = next_fetch(text);
	return 0;
}

/* Copy the PART of URL into TEXT, as libcurl, which will connect, understands it.  Returns false if
 * URL has no such part. */
static bool url_part(CURLU *url, CURLUPart part, char *text, size_t size)
{
	char *found = NULL;
	bool is_there = curl_url_get(url, part, &found, 0) == CURLUE_OK;

	snprintf(text, size, "%s", is_there ? found : "");
	curl_free(found);
	return is_there;
}

/* May a container's token be sent to the URL TEXT?  The token is a secret, so without TLS only this
 * machine's own services get it.  Refuse a URL with a user, because libcurl would send that user in
 * the token's place. */
static bool may_be_asked(const char *text)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]", "169.254.170.2",
	    "169.254.170.23", "[fd00:ec2::23]"};
	char scheme[16], host[256], ignored[8];
	CURLU *url = curl_url();
	bool may = false;

	if (url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
	    url_part(url, CURLUPART_SCHEME, scheme, sizeof scheme) &&
	    url_part(url, CURLUPART_HOST, host, sizeof host) &&
	    !url_part(url, CURLUPART_USER, ignored, sizeof ignored) &&
	    !url_part(url, CURLUPART_PASSWORD, ignored, sizeof ignored)) {
		may = strcmp(scheme, "https") == 0;
		for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
			may =
			    may || (strcmp(scheme, "http") == 0 && strcasecmp(host, hosts[i]) == 0);
	}
	curl_url_cleanup(url);
	return may;
}

/* May another try soon get another answer? */
static bool passes(long status)
{
	return status == 429 || status >= 500;
}

/* Make the header "Authorization: TOKEN".  Read the token from a file, where it is renewed, or else
 * from a variable; without either, HEADER is "". */
static int container_header(char *header, size_t size, struct error *error)
{
	const char *path = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	char token[4096] = "";
	FILE *file;

	if (path != NULL && path[0] != '\0') {
		file = fopen(path, "re");
		if (file == NULL || fgets(token, sizeof token, file) == NULL)
			token[0] = '\0';
		if (file != NULL)
			fclose(file);
		token[strcspn(token, "\r\n")] = '\0';
		if (token[0] == '\0')
			return error_plain(error, ERROR_PERMISSION, "cannot read a token in %.200s",
			    path);
	} else if (aws_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN", token, sizeof token, error) !=
		   0) {
		return -1;
	}
	snprintf(header, size, "%s%s", token[0] != '\0' ? "Authorization: " : "", token);
	return 0;
}

/* Take the login that the profile's credential_process prints.  Returns 0; 1: the profile names no
 * such program; or -1 with ERROR filled. */
static int process_login(int64_t until, struct error *error)
{
	char command[1024], text[LONGEST_ANSWER], expiration[40];
	struct aws_login found = {.key = ""};

	if (aws_profile_value("credential_process", command, sizeof command, error) != 0)
		return -1;
	if (command[0] == '\0')
		return 1;
	if (aws_process_run(command, text, sizeof text, until, error) != 0)
		return -1;
	/* a login that does not lapse has no session token, and no expiration date */
	if (!json_member(text, "AccessKeyId", found.key, sizeof found.key) ||
	    !json_member(text, "SecretAccessKey", found.secret, sizeof found.secret)) {
		explicit_bzero(text, sizeof text);
		return error_plain(error, ERROR_PERMISSION,
		    "no login: credential_process printed none: %.200s", command);
	}
	if (!json_member(text, "SessionToken", found.session, sizeof found.session))
		found.session[0] = '\0';
	role.login = found;
	role.valid = true;
	role.again = json_member(text, "Expiration", expiration, sizeof expiration)
	                 ? next_fetch(text)
	                 : NEVER;
	explicit_bzero(text, sizeof text);
	return 0;
}

/* Take the login of the role of an ECS task or an EKS pod.  Returns 0; 1 if there is none; or -1
 * with ERROR filled. */
static int container_role(int64_t until, struct error *error)
{
	char relative[512], url[1024], header[4200];
	struct fetch asked = {.method = "GET",
	    .header = header,
	    .until = earlier(until, clock_boottime() + CONTAINER_TIMEOUT)};
	long status;
	int taken;

	if (aws_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", relative, sizeof relative,
		error) != 0 ||
	    aws_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, sizeof url, error) != 0 ||
	    container_header(header, sizeof header, error) != 0)
		return -1;
	if (relative[0] == '/')
		snprintf(url, sizeof url, CONTAINER "%s", relative);
	if (url[0] == '\0')
		return 1;
	if (!may_be_asked(url))
		return error_plain(error, ERROR_USAGE,
		    "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor this machine's, or "
		    "has a user in it");
	status = fetch(&asked, url, error);
	taken = status == 200 ? take_role(buffer_text(&asked.answer), url, error) : -1;
	if (status >= 0 && status != 200)
		error_plain(error, passes(status) ? ERROR_AWAY : ERROR_PERMISSION,
		    "cannot get credentials from %.200s: HTTP status %ld", url, status);
	buffer_clear(&asked.answer);
	return taken;
}

/* The metadata service of an instance has answered a request for WHAT with STATUS; -1: it has not
 * answered, and ERROR is filled.  Returns -1 with ERROR filled. */
static int instance_refuses(long status, const char *what, struct error *error)
{
	if (status < 0)
		return -1;
	if (status == 404)
		return error_plain(error, ERROR_PERMISSION, "no login: this instance has no role");
	return error_plain(error, passes(status) ? ERROR_AWAY : ERROR_PERMISSION,
	    "no login: this instance's metadata service answers %ld to a request for %s", status,
	    what);
}

/* Ask the metadata service at BASE, with the header TOKEN, for the instance's role, and take the
 * login of that role. */
static int take_instance_role(struct fetch *asked, const char *base, const char *token,
    struct error *error)
{
	char url[600], name[128];
	long status;

	asked->method = "GET";
	asked->header = token;
	snprintf(url, sizeof url, "%s" ROLES, base);
	status = fetch(asked, url, error);
	if (status != 200)
		return instance_refuses(status, "its role", error);
	snprintf(name, sizeof name, "%.120s", buffer_text(&asked->answer));
	name[strcspn(name, "\r\n?#%/ ")] = '\0';
	snprintf(url, sizeof url, "%s" ROLES "%s", base, name);
	status = fetch(asked, url, error);
	if (status != 200)
		return instance_refuses(status, "its login", error);
	return take_role(buffer_text(&asked->answer), url, error);
}

/* Take the login of the role of an EC2 instance, by IMDSv2.  Returns 0; 1: the service is absent,
 * is disabled, or gives no token; or -1 with ERROR filled. */
static int instance_role(int64_t until, struct error *error)
{
	char base[272], token[600], url[600], disabled[16];
	struct fetch asked = {.method = "PUT",
	    .header = "X-aws-ec2-metadata-token-ttl-seconds: 60",
	    .until = earlier(until, clock_boottime() + INSTANCE_TIMEOUT)};
	int taken = 1;
	long status;

	if (aws_variable("AWS_EC2_METADATA_DISABLED", disabled, sizeof disabled, error) != 0 ||
	    aws_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", base, sizeof base, error) != 0)
		return -1;
	if (strcasecmp(disabled, "true") == 0)
		return 1;
	if (base[0] == '\0')
		strcpy(base, INSTANCE);
	base[strlen(base) - (base[strlen(base) - 1] == '/')] = '\0';
	snprintf(url, sizeof url, "%s/latest/api/token", base);
	status = fetch(&asked, url, error);
	if (status == 200 && strcspn(buffer_text(&asked.answer), "\r\n") < 500) {
		snprintf(token, sizeof token, "X-aws-ec2-metadata-token: %.500s",
		    buffer_text(&asked.answer));
		token[strcspn(token, "\r\n")] = '\0';
		asked.until = earlier(until, clock_boottime() + CONTAINER_TIMEOUT);
		taken = take_instance_role(&asked, base, token, error);
	} else if (asked.connected && (status < 0 || passes(status))) {
		taken = instance_refuses(status, "a token", error);
	}
	buffer_clear(&asked.answer);
	return taken;
}

static int from_variables(struct aws_login *login, struct error *error)
{
	*login = (struct aws_login){.key = ""};
	if (aws_variable("AWS_ACCESS_KEY_ID", login->key, sizeof login->key, error) != 0)
		return -1;
	if (login->key[0] != '\0')
		return aws_variable("AWS_SECRET_ACCESS_KEY", login->secret, sizeof login->secret,
			   error) != 0 ||
		               aws_variable("AWS_SESSION_TOKEN", login->session,
				   sizeof login->session, error) != 0
		           ? -1
		           : 0;
	return aws_variable("SEMLOCK_USER", login->key, sizeof login->key, error) != 0 ||
	               aws_variable("SEMLOCK_PASSWORD", login->secret, sizeof login->secret,
			   error) != 0
	           ? -1
	           : 0;
}

static int from_profile(struct aws_login *login, struct error *error)
{
	return aws_profile_value("aws_access_key_id", login->key, sizeof login->key, error) != 0 ||
	               aws_profile_value("aws_secret_access_key", login->secret,
			   sizeof login->secret, error) != 0 ||
	               aws_profile_value("aws_session_token", login->session, sizeof login->session,
			   error) != 0
	           ? -1
	           : 0;
}

/* No source has a login.  If the profile has one that only Amazon's own clients can use, say
 * so. */
static int no_login(struct error *error)
{
	static const char *const others[] = {"role_arn", "sso_session", "sso_start_url",
	    "web_identity_token_file", "login_session"};
	const char *named = getenv("AWS_PROFILE");
	char value[512];

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		if (aws_profile_value(others[i], value, sizeof value, error) != 0)
			return -1;
		if (value[0] != '\0')
			return error_plain(error, ERROR_PERMISSION,
			    "no login: the profile %.60s has %s, which this program cannot use: "
			    "set credential_process = aws configure export-credentials --profile "
			    "%.60s in a profile of its own",
			    aws_profile(), others[i], aws_profile());
	}
	if (getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != NULL)
		return error_plain(error, ERROR_PERMISSION,
		    "no login: AWS_WEB_IDENTITY_TOKEN_FILE is for programs that ask STS, which "
		    "this one does not: use EKS Pod Identity");
	return error_plain(error, ERROR_PERMISSION,
	    "no login: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or make the profile %.60s "
	    "in ~/.aws/credentials",
	    named != NULL ? named : "default");
}

/* Fetch a role's login, if that is due.  If there is no answer while the last login may still be
 * good, keep that one, and ask again later. */
static int from_role(struct aws_login *login, int64_t until, struct error *error)
{
	int fetched = 0;

	if (!role.valid || clock_boottime() >= role.again) {
		fetched = process_login(until, error);
		if (fetched == 1)
			fetched = container_role(until, error);
		if (fetched == 1)
			fetched = instance_role(until, error);
		if (fetched != 0 && role.valid) {
			role.again = clock_boottime() + LEAST_RENEWAL * SECOND;
			fetched = 0;
		}
	}
	if (fetched == 0)
		*login = role.login;
	return fetched == 1 ? no_login(error) : fetched;
}

int aws_login_find(struct aws_login *login, int64_t until, struct error *error)
{
	if (from_variables(login, error) != 0)
		return -1;
	if (login->key[0] == '\0' && from_profile(login, error) != 0)
		return -1;
	if (login->key[0] == '\0')
		return from_role(login, until, error);
	if (login->secret[0] == '\0')
		return error_plain(error, ERROR_PERMISSION,
		    "no login: there is a key and no secret (AWS_SECRET_ACCESS_KEY)");
	return 0;
}

bool aws_login_forget(void)
{
	bool was = role.valid;

	role.valid = false;
	return was;
}
