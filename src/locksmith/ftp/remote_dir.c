/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/ftp/remote_dir.h"

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No real reply is longer; the rest is dropped. */
#define LONGEST_REPLY ((size_t)256 * 1024)
#define LONGEST_PATH 1400
#define CONNECT_SECONDS 10L
#define REQUEST (10 * SECOND)
#define IDLE_SECONDS 100000L /* the server decides when a connection has been idle for too long */

/* Appends text to url (size bytes), every byte percent-encoded, so that libcurl changes none. */
static void append_encoded(char *url, size_t size, const char *text)
{
	size_t n = strlen(url);

	for (; *text != '\0' && n + sizeof "%XX" <= size; text++)
		n += (size_t)snprintf(url + n, size - n, "%%%02X", (unsigned char)*text);
}

/* Without a user libcurl would log in as anonymous, into another directory, where this is another
   lock. */
static int note_user(CURL *easy, curl_infotype type, char *data, size_t size, void *context)
{
	static const char command[] = "USER anonymous\r";
	struct remote_dir *r = context;

	(void)easy;
	if (type == CURLINFO_HEADER_OUT && size >= strlen(command) &&
	    memcmp(data, command, strlen(command)) == 0)
		r->nobody = true;
	return 0;
}

static void look_into_netrc(struct remote_dir *r)
{
	const char *file = getenv("NETRC"), *home = getenv("HOME");
	CURL *c = r->transfer.easy;
	char path[512];
	struct stat st;

	if (file == NULL || *file == '\0') {
		snprintf(path, sizeof path, "%s/.netrc", home != NULL ? home : "");
		file = path;
	}
	if (stat(file, &st) == 0 && (st.st_mode & 077) != 0)
		say(SAYS_NOTE " %s: others can read it: chmod 600 it", file);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	curl_easy_setopt(c, CURLOPT_NETRC_FILE, file);
	curl_easy_setopt(c, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(c, CURLOPT_DEBUGFUNCTION, note_user);
	curl_easy_setopt(c, CURLOPT_DEBUGDATA, r);
}

/* Gives libcurl the user and the password, or has it look into ~/.netrc. 0, or -1 with r->error. */
static int give_login(struct remote_dir *r)
{
	CURL *c = r->transfer.easy;
	struct login login;

	if (login_find(r->url, &login, &r->error) != 0)
		return -1;
	if (login.user[0] == '\0' && login.has_password)
		return error_plain(&r->error, ERROR_PERMISSION,
		    "SEMLOCK_PASSWORD is set, and no user: name one by %s://USER@HOST/... or SEMLOCK_USER",
		    r->url->scheme);
	r->unnamed = login.user[0] == '\0';
	if (login.has_password || strcmp(login.user, "anonymous") == 0) {
		curl_easy_setopt(c, CURLOPT_USERNAME, login.user);
		curl_easy_setopt(c, CURLOPT_PASSWORD, login.has_password ? login.password : "semlock@");
	} else {
		look_into_netrc(r);
		/* CURLOPT_USERNAME would switch netrc off: give the user in the URL. */
		if (!r->unnamed) {
			append_encoded(r->user, sizeof r->user - 1, login.user);
			strcat(r->user, "@");
		}
	}
	explicit_bzero(&login, sizeof login);
	return 0;
}

static void give_settings(struct remote_dir *r)
{
	CURL *c = r->transfer.easy;

	r->ops->settings(r);
	curl_easy_setopt(c, CURLOPT_URL, r->base);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, r->ops->protocols);
	curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	/* Slow logins are common, and a short timeout would make a storm of new ones. */
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, IDLE_SECONDS);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, buffer_receive);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &r->body);
}

enum reply remote_dir_open(struct remote_dir *r, const struct remote_dir_ops *ops, const struct url *url,
    int64_t until)
{
	char *entry = NULL;
	enum reply reply;

	*r = (struct remote_dir){.ops = ops, .url = url, .until = until, .reply.limit = LONGEST_REPLY,
	    .body.limit = LONGEST_REPLY};
	if (url->hosts != 1)
		return REMOTE_DIR_FATAL(r, ERROR_USAGE, "%s:// takes one host", url->scheme);
	if (transfer_open(&r->transfer) != 0)
		return REMOTE_DIR_FATAL(r, ERROR_SYSTEM, "libcurl does not start, or is out of memory");
	if (give_login(r) != 0)
		return REPLY_FATAL;
	give_settings(r);
	reply = remote_dir_perform(r, curl_slist_append(NULL, r->ops->login));
	if (reply == REPLY_REFUSED)
		return REMOTE_DIR_FATAL(
		    r, ERROR_UNAVAILABLE, "the server does not say where we are: %s", r->text);
	if (reply != REPLY_DONE)
		return reply;
	curl_easy_getinfo(r->transfer.easy, CURLINFO_FTP_ENTRY_PATH, &entry);
	r->until = NEVER;
	snprintf(r->home, sizeof r->home, "%s", entry != NULL ? entry : "/");
	return REPLY_DONE;
}

enum reply remote_dir_perform(struct remote_dir *r, struct curl_slist *commands)
{
	int64_t until = earlier(r->until, clock_boottime() + REQUEST);
	CURLcode result;

	buffer_clear(&r->reply);
	buffer_clear(&r->body);
	curl_easy_setopt(r->transfer.easy, CURLOPT_QUOTE, commands);
	result = transfer_run(&r->transfer, until, NULL);
	/* SFTP: libcurl reports the end of the server in the middle of a login as a refusal: try again. A server
	   that hangs up after a refusal refuses again. */
	if (result == CURLE_LOGIN_DENIED && r->transfer.server_hung_up)
		result = transfer_run(&r->transfer, until, NULL);
	curl_easy_setopt(r->transfer.easy, CURLOPT_QUOTE, NULL);
	curl_slist_free_all(commands);
	return r->ops->verdict(r, result);
}

void remote_dir_aim(struct remote_dir *r, const char *path)
{
	char url[sizeof r->base + 3 * LONGEST_PATH];

	snprintf(url, sizeof url, "%s%s", r->base, r->ops->root);
	append_encoded(url, sizeof url - 1, path + 1);
	strcat(url, "/");
	curl_easy_setopt(r->transfer.easy, CURLOPT_URL, url);
}

enum reply remote_dir_names(struct remote_dir *r, const char *path, ftplist_name each, void *data)
{
	enum reply reply;

	remote_dir_aim(r, path);
	curl_easy_setopt(r->transfer.easy, CURLOPT_NOBODY, 0L);
	curl_easy_setopt(r->transfer.easy, CURLOPT_DIRLISTONLY, 1L);
	reply = remote_dir_perform(r, NULL);
	curl_easy_setopt(r->transfer.easy, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(r->transfer.easy, CURLOPT_URL, r->base);
	if (reply == REPLY_REFUSED && r->code == 450) /* nothing is there to be listed */
		return REPLY_DONE;
	if (reply == REPLY_DONE && r->body.overflow)
		return REPLY_REFUSED; /* an incomplete listing must not be taken for a complete one */
	if (reply == REPLY_DONE)
		ftplist_names(buffer_text(&r->body), each, data);
	return reply;
}

void remote_dir_close(struct remote_dir *r)
{
	transfer_close(&r->transfer);
	buffer_clear(&r->reply);
	buffer_clear(&r->body);
}
