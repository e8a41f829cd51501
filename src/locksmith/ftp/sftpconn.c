/* SPDX-License-Identifier: MIT */
/* Directories over SFTP. Errors are more precise than over FTP, a listing needs a transfer. */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/ftplist.h"
#include "locksmith/ftp/remote_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum reply sftp_verdict(struct remote_dir *r, CURLcode result)
{
	snprintf(r->text, sizeof r->text, "%s", r->transfer.error);
	/* libcurl reports every missing answer as a refusal. */
	if (result == CURLE_QUOTE_ERROR && r->transfer.cut_off)
		result = CURLE_SEND_ERROR;
	switch (result) {
	case CURLE_OK:
		r->reached = true;
		return REPLY_DONE;
	case CURLE_QUOTE_ERROR:
	case CURLE_REMOTE_FILE_NOT_FOUND:
	case CURLE_REMOTE_ACCESS_DENIED:
	case CURLE_REMOTE_FILE_EXISTS:
		r->reached = true;
		return REPLY_REFUSED;
	case CURLE_LOGIN_DENIED:
		return REMOTE_DIR_FATAL(r, ERROR_PERMISSION, "login denied: %s%s", r->text,
		    r->unnamed ? " (no user was named: sftp://USER@HOST/..., SEMLOCK_USER, ~/.netrc)" : "");
	case CURLE_PEER_FAILED_VERIFICATION:
		return REMOTE_DIR_FATAL(r, ERROR_UNAVAILABLE,
		    "the server's key is not in known_hosts, or has changed: connect with ssh(1) to see which");
	case CURLE_UNSUPPORTED_PROTOCOL:
		return REMOTE_DIR_FATAL(r, ERROR_UNAVAILABLE, "%s", r->text);
	default:
		error_plain(&r->error, ERROR_AWAY, "%s", r->text);
		return r->reached ? REPLY_UNKNOWN : REPLY_FATAL;
	}
}

/* url_parse() refuses quotes and backslashes in a path. */
static enum reply sftp_command(struct remote_dir *r, const char *verb, const char *path)
{
	char line[1400];

	snprintf(line, sizeof line, "%s \"%s\"", verb, path);
	return remote_dir_perform(r, curl_slist_append(NULL, line));
}

static enum reply sftp_mkdir(struct remote_dir *r, const char *path)
{
	return sftp_command(r, "mkdir", path);
}

static enum reply sftp_rmdir(struct remote_dir *r, const char *path)
{
	return sftp_command(r, "rmdir", path);
}

static enum reply sftp_rename(struct remote_dir *r, const char *from, const char *to)
{
	char line[2800];

	snprintf(line, sizeof line, "rename \"%s\" \"%s\"", from, to);
	return remote_dir_perform(r, curl_slist_append(NULL, line));
}

static void nothing(void *data, const char *name)
{
	(void)data;
	(void)name;
}

static enum reply sftp_enter(struct remote_dir *r, const char *path)
{
	return remote_dir_names(r, path, nothing, NULL);
}

static enum reply sftp_modified(struct remote_dir *r, const char *path, int64_t *seconds)
{
	curl_off_t time = -1;
	enum reply reply;

	remote_dir_aim(r, path);
	curl_easy_setopt(r->transfer.easy, CURLOPT_FILETIME, 1L);
	reply = remote_dir_perform(r, NULL);
	curl_easy_setopt(r->transfer.easy, CURLOPT_FILETIME, 0L);
	curl_easy_setopt(r->transfer.easy, CURLOPT_URL, r->base);
	if (reply != REPLY_DONE)
		return reply;
	curl_easy_getinfo(r->transfer.easy, CURLINFO_FILETIME_T, &time);
	if (time < 0)
		return REPLY_REFUSED;
	*seconds = time;
	return REPLY_DONE;
}

/* Without a known_hosts file libcurl would trust any server. */
static void known_hosts(struct remote_dir *r)
{
	const char *file = getenv("SEMLOCK_KNOWN_HOSTS"), *home = getenv("HOME");
	char path[512];

	if (file == NULL) {
		snprintf(path, sizeof path, "%s/.ssh/known_hosts", home != NULL ? home : "");
		file = path;
	}
	curl_easy_setopt(r->transfer.easy, CURLOPT_SSH_KNOWNHOSTS, file);
}

static void sftp_settings(struct remote_dir *r)
{
	CURL *c = r->transfer.easy;
	const char *key = getenv("SEMLOCK_SSH_KEY");

	snprintf(r->base, sizeof r->base, "sftp://%s%s/", r->user, r->url->host[0]);
	if (key != NULL)
		curl_easy_setopt(c, CURLOPT_SSH_PRIVATE_KEYFILE, key);
	transfer_note_hang_up(&r->transfer);
	known_hosts(r);
}

const struct remote_dir_ops sftp_ops = {
    .protocols = "sftp",
    .root = "",
    .settings = sftp_settings,
    .login = "pwd",
    .verdict = sftp_verdict,
    .mkdir = sftp_mkdir,
    .rmdir = sftp_rmdir,
    .rename = sftp_rename,
    .list = remote_dir_names,
    .enter = sftp_enter,
    .modified = sftp_modified,
};
