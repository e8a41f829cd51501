/* SPDX-License-Identifier: MIT */
/* Directories over SFTP.  Errors are more precise than over FTP, but a listing needs a transfer. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/remote_dir.h"

/* Was this refusal a missing answer?  libcurl reports both in the same way.  If no answer came, the
 * connection is closed, or, with libcurl 8.23, libcurl's message is "Unknown error".  For a real
 * refusal libcurl has other words, whatever the server's reason. */
static bool unanswered(const struct transfer *transfer, CURLcode result)
{
	return result == CURLE_QUOTE_ERROR &&
	       (transfer->cut_off || strstr(transfer->error, "Unknown error") != NULL);
}

static enum reply sftp_verdict(struct remote_dir *remote, CURLcode result)
{
	const bool lost = unanswered(&remote->transfer, result);

	snprintf(remote->text, sizeof remote->text, "%s", remote->transfer.error);
	/* A connection on which one answer is lost gives none to the next request, either. */
	curl_easy_setopt(remote->transfer.easy, CURLOPT_FRESH_CONNECT, lost ? 1L : 0L);
	if (lost)
		result = CURLE_SEND_ERROR;
	switch (result) {
	case CURLE_OK:
		remote->reached = true;
		return REPLY_DONE;
	case CURLE_QUOTE_ERROR:
	case CURLE_REMOTE_FILE_NOT_FOUND:
	case CURLE_REMOTE_ACCESS_DENIED:
	case CURLE_REMOTE_FILE_EXISTS:
		remote->reached = true;
		return REPLY_REFUSED;
	case CURLE_LOGIN_DENIED:
		return REMOTE_DIR_FATAL(remote, ERROR_PERMISSION, "login denied: %s%s",
		    remote->text,
		    remote->unnamed
			? " (no user was named: sftp://USER@HOST/..., SEMLOCK_USER, ~/.netrc)"
			: "");
	case CURLE_PEER_FAILED_VERIFICATION:
		return REMOTE_DIR_FATAL(remote, ERROR_UNAVAILABLE,
		    "the server's key is not in known_hosts, or has changed: connect with ssh(1) "
		    "to see which");
	case CURLE_UNSUPPORTED_PROTOCOL:
		return REMOTE_DIR_FATAL(remote, ERROR_UNAVAILABLE, "%s", remote->text);
	default:
		error_plain(&remote->error, remote->transfer.late ? ERROR_SLOW : ERROR_AWAY, "%s",
		    remote->text);
		return remote->reached ? REPLY_UNKNOWN : REPLY_FATAL;
	}
}

/* What PATH has from the URL has no quotes or backslashes: url_parse() refuses them. */
static enum reply sftp_command(struct remote_dir *remote, const char *verb, const char *path)
{
	char line[1400];

	snprintf(line, sizeof line, "%s \"%s\"", verb, path);
	return remote_dir_perform(remote, curl_slist_append(NULL, line));
}

static enum reply sftp_mkdir(struct remote_dir *remote, const char *path)
{
	return sftp_command(remote, "mkdir", path);
}

static enum reply sftp_rmdir(struct remote_dir *remote, const char *path)
{
	return sftp_command(remote, "rmdir", path);
}

static enum reply sftp_rename(struct remote_dir *remote, const char *from, const char *to)
{
	char line[2800];

	snprintf(line, sizeof line, "rename \"%s\" \"%s\"", from, to);
	return remote_dir_perform(remote, curl_slist_append(NULL, line));
}

static void nothing(void *data, const char *name)
{
	(void)data;
	(void)name;
}

static enum reply sftp_enter(struct remote_dir *remote, const char *path)
{
	return remote_dir_names(remote, path, nothing, NULL);
}

static enum reply sftp_modified(struct remote_dir *remote, const char *path, int64_t *seconds)
{
	curl_off_t time = -1;
	enum reply reply;

	remote_dir_aim(remote, path);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_FILETIME, 1L);
	reply = remote_dir_perform(remote, NULL);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_FILETIME, 0L);
	curl_easy_setopt(remote->transfer.easy, CURLOPT_URL, remote->base);
	if (reply != REPLY_DONE)
		return reply;
	curl_easy_getinfo(remote->transfer.easy, CURLINFO_FILETIME_T, &time);
	if (time < 0)
		return REPLY_REFUSED;
	*seconds = time;
	return REPLY_DONE;
}

static void sftp_settings(struct remote_dir *remote)
{
	CURL *easy = remote->transfer.easy;
	const char *key = getenv("SEMLOCK_SSH_KEY"), *hosts = getenv("SEMLOCK_KNOWN_HOSTS"),
		   *home = getenv("HOME");
	char path[512];

	snprintf(remote->base, sizeof remote->base, "sftp://%s%s/", remote->user,
	    remote->url->host[0]);
	if (key != NULL)
		curl_easy_setopt(easy, CURLOPT_SSH_PRIVATE_KEYFILE, key);
	transfer_note_hang_up(&remote->transfer);
	/* Without a known_hosts file libcurl would trust any server. */
	snprintf(path, sizeof path, "%s/.ssh/known_hosts", home != NULL ? home : "");
	curl_easy_setopt(easy, CURLOPT_SSH_KNOWNHOSTS, hosts != NULL ? hosts : path);
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
