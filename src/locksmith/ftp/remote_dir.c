/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/url.h"
#include "locksmith/ftp/remote_dir.h"

/* No real reply is longer; the rest is dropped. */
#define LONGEST_REPLY ((size_t)256 * 1024)
#define LONGEST_PATH 1400
/* One of libcurl's own limits, which also count the time in which this process waits for a
 * processor.  It is long, so that REQUEST and remote->until take effect first. */
#define CONNECT_SECONDS 60L
#define REQUEST (10 * SECOND)
#define LOGIN_DELAY (5 * SECOND)
#define IDLE_SECONDS 100000L /* the server decides when a connection has been idle for too long */

/* Append TEXT to URL (SIZE bytes), every byte percent-encoded, so that libcurl changes none. */
static void append_encoded(char *url, size_t size, const char *text)
{
	size_t n = strlen(url);

	for (; *text != '\0' && n + sizeof "%XX" <= size; text++)
		n += (size_t)snprintf(url + n, size - n, "%%%02X", (unsigned char)*text);
}

/* Note whether libcurl logs in as anonymous, which it does if no user is named.  For anonymous the
 * same path may be another lock. */
static int note_user(CURL *easy, curl_infotype type, char *data, size_t size, void *context)
{
	static const char command[] = "USER anonymous\r";
	struct remote_dir *remote = context;

	(void)easy;
	if (type == CURLINFO_HEADER_OUT && size >= strlen(command) &&
	    memcmp(data, command, strlen(command)) == 0)
		remote->nobody = true;
	return 0;
}

/* Give libcurl the user and the password, or let it look into ~/.netrc.  Returns 0, or -1 with
 * remote->error. */
static int give_login(struct remote_dir *remote)
{
	const char *file = getenv("NETRC"), *home = getenv("HOME");
	CURL *easy = remote->transfer.easy;
	struct login login;
	char path[512];
	struct stat st;

	if (login_find(remote->url, &login, &remote->error) != 0)
		return -1;
	if (login.user[0] == '\0' && login.has_password)
		return error_plain(&remote->error, ERROR_PERMISSION,
		    "SEMLOCK_PASSWORD is set, but no user is: give one by %s://USER@HOST/... or "
		    "SEMLOCK_USER",
		    remote->url->scheme);
	remote->unnamed = login.user[0] == '\0';
	if (login.has_password || strcmp(login.user, "anonymous") == 0) {
		curl_easy_setopt(easy, CURLOPT_USERNAME, login.user);
		curl_easy_setopt(easy, CURLOPT_PASSWORD,
		    login.has_password ? login.password : "semlock@");
	} else {
		if (file == NULL || *file == '\0') {
			snprintf(path, sizeof path, "%s/.netrc", home != NULL ? home : "");
			file = path;
		}
		if (stat(file, &st) == 0 && (st.st_mode & 077) != 0)
			say(SAYS_NOTE " %s: others can read it: chmod 600 it", file);
		curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
		curl_easy_setopt(easy, CURLOPT_NETRC_FILE, file);
		curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
		curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, note_user);
		curl_easy_setopt(easy, CURLOPT_DEBUGDATA, remote);
		/* CURLOPT_USERNAME would switch netrc off: give the user in the URL. */
		if (!remote->unnamed) {
			append_encoded(remote->user, sizeof remote->user - 1, login.user);
			strcat(remote->user, "@");
		}
	}
	explicit_bzero(&login, sizeof login);
	return 0;
}

enum reply remote_dir_open(struct remote_dir *remote, const struct remote_dir_ops *ops,
    const struct url *url, int64_t until, bool no_wait)
{
	char *entry = NULL;
	enum reply reply;
	CURL *easy;

	*remote = (struct remote_dir){.ops = ops,
	    .url = url,
	    .until = until,
	    .no_wait = no_wait,
	    .reply.limit = LONGEST_REPLY,
	    .body.limit = LONGEST_REPLY};
	if (url->hosts != 1)
		return REMOTE_DIR_FATAL(remote, ERROR_USAGE, "%s:// takes one host", url->scheme);
	if (transfer_open(&remote->transfer) != 0)
		return REMOTE_DIR_FATAL(remote, ERROR_SYSTEM,
		    "libcurl does not start, or is out of memory");
	if (give_login(remote) != 0)
		return REPLY_FATAL;
	easy = remote->transfer.easy;
	ops->settings(remote);
	curl_easy_setopt(easy, CURLOPT_URL, remote->base);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, ops->protocols);
	curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	/* Logins are often slow.  If a short timeout ended them, a storm of new logins would
	 * follow. */
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_SECONDS);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, buffer_receive);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &remote->body);
	reply = remote_dir_perform(remote, curl_slist_append(NULL, ops->login));
	if (reply == REPLY_REFUSED)
		return REMOTE_DIR_FATAL(remote, ERROR_UNAVAILABLE,
		    "no login directory from the server: %s", remote->text);
	if (reply != REPLY_DONE)
		return reply;
	curl_easy_getinfo(easy, CURLINFO_FTP_ENTRY_PATH, &entry);
	remote->until = NEVER;
	snprintf(remote->home, sizeof remote->home, "%s", entry != NULL ? entry : "/");
	return REPLY_DONE;
}

static CURLcode run_request(struct remote_dir *remote)
{
	struct transfer *transfer = &remote->transfer;

	transfer_start(transfer);
	transfer_drive(transfer, REQUEST, remote->until, NULL);
	/* Many servers answer a wrong password only after some seconds.  With WAIT, semlock -n goes
	 * on waiting for us. */
	if (!transfer->ended && !remote->reached && remote->no_wait &&
	    buffer_text(&remote->reply)[0] == '2') {
		say_wait("note=for the server's answer to the login");
		transfer_drive(transfer, LOGIN_DELAY, remote->until + LOGIN_DELAY, NULL);
	}
	transfer_cut(transfer);
	return transfer->ended ? transfer->result : CURLE_OPERATION_TIMEDOUT;
}

enum reply remote_dir_perform(struct remote_dir *remote, struct curl_slist *commands)
{
	CURLcode result;

	buffer_clear(&remote->reply);
	buffer_clear(&remote->body);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_QUOTE, commands);
	result = run_request(remote);
	/* SFTP: if the server hangs up in the middle of a login, libcurl reports that the login was
	 * denied.  Try again: if the denial was real, the server repeats it. */
	if (result == CURLE_LOGIN_DENIED && remote->transfer.server_hung_up)
		result = run_request(remote);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_QUOTE, NULL);
	curl_slist_free_all(commands);
	return remote->ops->verdict(remote, result);
}

void remote_dir_aim(struct remote_dir *remote, const char *path)
{
	char url[sizeof remote->base + (size_t)3 * LONGEST_PATH];

	snprintf(url, sizeof url, "%s%s", remote->base, remote->ops->root);
	append_encoded(url, sizeof url - 1, path + 1);
	strcat(url, "/");
	curl_easy_setopt(remote->transfer.easy, CURLOPT_URL, url);
}

enum reply remote_dir_names(struct remote_dir *remote, const char *path, listing_name each,
    void *data)
{
	enum reply reply;

	remote_dir_aim(remote, path);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_NOBODY, 0L);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_DIRLISTONLY, 1L);
	reply = remote_dir_perform(remote, NULL);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_URL, remote->base);
	if (reply == REPLY_REFUSED && remote->code == 450) /* the directory has no entries */
		return REPLY_DONE;
	if (reply == REPLY_DONE && remote->body.overflow)
		/* do not take an incomplete listing for a complete one */
		return REPLY_REFUSED;
	if (reply == REPLY_DONE)
		listing_of_names(buffer_text(&remote->body), each, data);
	return reply;
}

void remote_dir_close(struct remote_dir *remote)
{
	transfer_close(&remote->transfer);
	buffer_clear(&remote->reply);
	buffer_clear(&remote->body);
}
