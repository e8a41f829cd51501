#include <config.h>

#include "locksmith/ftp/remote_dir.h"

#include "locksmith/common/url.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No real reply is longer; the rest is dropped. */
#define LONGEST_REPLY ((size_t)256 * 1024)

enum reply remote_dir_open(struct remote_dir *r, const struct url *url, int64_t until)
{
	*r = (struct remote_dir){.url = url, .reply.limit = LONGEST_REPLY, .body.limit = LONGEST_REPLY};
	if (url->hosts != 1) {
		failure_set(&r->failure, EXIT_USAGE, "%s:// takes one host", url->scheme);
		return REPLY_FATAL;
	}
	if (transfer_open(&r->transfer) != 0) {
		failure_set(&r->failure, EXIT_INTERNAL, "out of memory");
		return REPLY_FATAL;
	}
	return strcmp(url->scheme, "sftp") == 0 ? sftpconn_open(r, until) : ftpconn_open(r, until);
}

/* Without a user libcurl would log in as anonymous, into another directory, where this is another
   lock. */
static int note_user(CURL *easy, curl_infotype type, char *data, size_t size, void *context)
{
	static const char command[] = "USER anonymous";
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
		say("NOTE %s: others can read it: chmod 600 it", file);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	curl_easy_setopt(c, CURLOPT_NETRC_FILE, file);
	curl_easy_setopt(c, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(c, CURLOPT_DEBUGFUNCTION, note_user);
	curl_easy_setopt(c, CURLOPT_DEBUGDATA, r);
}

int remote_dir_login(struct remote_dir *r)
{
	CURL *c = r->transfer.easy;
	struct login login;

	if (login_find(r->url, &login, &r->failure) != 0)
		return -1;
	if (login.user[0] == '\0' && login.has_password)
		return failure_set(&r->failure, EXIT_NOTPERMITTED,
		    "SEMLOCK_PASSWORD is set, and no user: name one by %s://USER@HOST/... or SEMLOCK_USER",
		    r->url->scheme);
	r->unnamed = login.user[0] == '\0';
	if (!r->unnamed)
		curl_easy_setopt(c, CURLOPT_USERNAME, login.user);
	if (login.has_password)
		curl_easy_setopt(c, CURLOPT_PASSWORD, login.password);
	else if (strcmp(login.user, "anonymous") == 0)
		curl_easy_setopt(c, CURLOPT_PASSWORD, "semlock@");
	else
		look_into_netrc(r);
	explicit_bzero(&login, sizeof login);
	return 0;
}

void remote_dir_close(struct remote_dir *r)
{
	transfer_close(&r->transfer);
	buffer_clear(&r->reply);
	buffer_clear(&r->body);
}
