/* SPDX-License-Identifier: MIT */
/* An FTP control connection: single commands and their replies.  No data connection is needed
 * unless the server cannot list by STAT. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/remote_dir.h"

#define RESPONSE_SECONDS 60L /* libcurl's own limit; remote_dir.c has a shorter one */

static enum reply ftp_fatal(struct remote_dir *remote, enum kind kind, const char *what)
{
	return REMOTE_DIR_FATAL(remote, kind, "%s: %s", what,
	    remote->text[0] != '\0' ? remote->text : remote->transfer.error);
}

/* Turn libcurl's error RESULT into a reply: REPLY_UNKNOWN if another try may help. */
static enum reply ftp_refused(struct remote_dir *remote, CURLcode result)
{
	char machine[sizeof remote->url->host[0]];

	if (remote->nobody) {
		url_hostname(remote->url->host[0], machine, sizeof machine);
		return REMOTE_DIR_FATAL(remote, ERROR_PERMISSION,
		    "no user for %.100s: put \"machine %.100s login USER password ...\" into "
		    "~/.netrc, or set "
		    "SEMLOCK_USER and SEMLOCK_PASSWORD",
		    remote->url->host[0], machine);
	}
	/* 421: the server has too many users, or is shutting down; it may also say so in answer to
	 * USER. */
	if (remote->code == 421 || (remote->code == 0 && strncmp(remote->text, "421", 3) == 0)) {
		error_plain(&remote->error, ERROR_AWAY, "the server is busy: %s", remote->text);
		return REPLY_UNKNOWN;
	}
	switch (result) {
	case CURLE_LOGIN_DENIED:
		return ftp_fatal(remote, ERROR_PERMISSION, "login denied");
	case CURLE_USE_SSL_FAILED:
		return ftp_fatal(remote, ERROR_UNAVAILABLE, "the server does not do TLS");
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		remote->text[0] = '\0';
		return ftp_fatal(remote, ERROR_UNAVAILABLE, "TLS");
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_URL_MALFORMAT:
		return ftp_fatal(remote, ERROR_UNAVAILABLE, "not possible");
	case CURLE_FTP_COULDNT_RETR_FILE:
		if (remote->code == 550) { /* NLST was refused: the directory is not there */
			remote->reached = true;
			return REPLY_REFUSED;
		}
		break;
	default:
		break;
	}
	error_plain(&remote->error, remote->transfer.late ? ERROR_SLOW : ERROR_AWAY, "%s",
	    remote->transfer.error);
	return remote->reached ? REPLY_UNKNOWN : REPLY_FATAL;
}

static enum reply ftp_verdict(struct remote_dir *remote, CURLcode result)
{
	const char *last = buffer_text(&remote->reply);
	long code = 0;

	for (const char *end = strchr(last, '\n'); end != NULL && end[1] != '\0';
	     end = strchr(last, '\n'))
		last = end + 1;
	snprintf(remote->text, sizeof remote->text, "%.*s", (int)strcspn(last, "\r\n"), last);
	curl_easy_getinfo(remote->transfer.easy, CURLINFO_RESPONSE_CODE, &code);
	remote->code = result == CURLE_OPERATION_TIMEDOUT ? 0 : (int)code;
	if (result != CURLE_OK || remote->code == 421)
		return ftp_refused(remote, result);
	remote->reached = true;
	if (remote->code == 530 || remote->code == 332 || remote->code == 532)
		return ftp_fatal(remote, ERROR_PERMISSION, "not logged in");
	return remote->code / 100 == 2 ? REPLY_DONE : REPLY_REFUSED;
}

/* Add "VERB PATH" to LIST.  The "*" keeps libcurl from closing the connection if the server
 * refuses. */
static struct curl_slist *ftp_command(struct curl_slist *list, const char *verb, const char *path)
{
	char line[1400];

	snprintf(line, sizeof line, "*%s %s", verb, path);
	return curl_slist_append(list, line);
}

static bool not_implemented(const struct remote_dir *remote)
{
	return remote->code == 500 || remote->code == 502 || remote->code == 504;
}

static enum reply ftp_mkdir(struct remote_dir *remote, const char *path)
{
	enum reply reply = remote_dir_perform(remote, ftp_command(NULL, "MKD", path));

	if (reply == REPLY_REFUSED && not_implemented(remote))
		return ftp_fatal(remote, ERROR_UNAVAILABLE, "the server cannot make directories");
	return reply;
}

static enum reply ftp_rmdir(struct remote_dir *remote, const char *path)
{
	return remote_dir_perform(remote, ftp_command(NULL, "RMD", path));
}

static enum reply ftp_rename(struct remote_dir *remote, const char *from, const char *to)
{
	/* send both commands in one request: proftpd accepts no other command between them */
	return remote_dir_perform(remote, ftp_command(ftp_command(NULL, "RNFR", from), "RNTO", to));
}

static enum reply ftp_enter(struct remote_dir *remote, const char *path)
{
	enum reply reply = remote_dir_perform(remote, ftp_command(NULL, "CWD", path));

	if (reply == REPLY_DONE)
		remote_dir_perform(remote, ftp_command(NULL, "CWD", remote->home));
	return reply;
}

/* List with STAT or, if the server's STAT takes no path, with NLST over a data connection. */
static enum reply ftp_list(struct remote_dir *remote, const char *path, listing_name each,
    void *data)
{
	enum reply reply = REPLY_REFUSED;

	if (!remote->no_stat) {
		reply = remote_dir_perform(remote, ftp_command(NULL, "STAT", path));
		remote->no_stat = reply == REPLY_REFUSED && not_implemented(remote);
	}
	if (remote->no_stat)
		return remote_dir_names(remote, path, each, data);
	/* do not take an incomplete listing for a complete one */
	if (reply == REPLY_DONE && remote->reply.overflow)
		return REPLY_REFUSED;
	if (reply == REPLY_DONE)
		listing_of_stat(buffer_text(&remote->reply), each, data);
	return reply;
}

static enum reply ftp_modified(struct remote_dir *remote, const char *path, int64_t *seconds)
{
	enum reply reply = remote_dir_perform(remote, ftp_command(NULL, "MLST", path));

	if (reply != REPLY_DONE)
		return reply;
	return listing_modified(buffer_text(&remote->reply), seconds) == 0 ? REPLY_DONE
	                                                                   : REPLY_REFUSED;
}

static size_t hear(char *data, size_t size, size_t count, void *context)
{
	struct remote_dir *remote = context;

	/* returning 0 makes libcurl end the login */
	return remote->nobody ? 0 : buffer_receive(data, size, count, &remote->reply);
}

static void ftp_settings(struct remote_dir *remote)
{
	CURL *easy = remote->transfer.easy;
	bool explicit_tls = strcmp(remote->url->scheme, "ftpes") == 0;

	snprintf(remote->base, sizeof remote->base, "%s://%s%s/",
	    explicit_tls ? "ftp" : remote->url->scheme, remote->user, remote->url->host[0]);
	curl_easy_setopt(easy, CURLOPT_FTP_FILEMETHOD, (long)CURLFTPMETHOD_NOCWD);
	/* Use PASV alone, never EPSV: if TLS fails on the data connection of EPSV, libcurl 7.88
	 * goes on with PASV, and from then on takes each reply for the reply to the next
	 * command. */
	curl_easy_setopt(easy, CURLOPT_FTP_USE_EPSV, 0L);
	/* Use ALL, never TRY: with TRY libcurl goes on in clear text if the server refuses TLS. */
	if (explicit_tls)
		curl_easy_setopt(easy, CURLOPT_USE_SSL, (long)CURLUSESSL_ALL);
	transfer_trust(&remote->transfer, getenv("SEMLOCK_CACERT"));
	curl_easy_setopt(easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, RESPONSE_SECONDS);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, hear);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, remote);
}

const struct remote_dir_ops ftp_ops = {
    .protocols = "ftp,ftps",
    .root = "/%2F",
    .settings = ftp_settings,
    .login = "*PWD",
    .verdict = ftp_verdict,
    .mkdir = ftp_mkdir,
    .rmdir = ftp_rmdir,
    .rename = ftp_rename,
    .list = ftp_list,
    .enter = ftp_enter,
    .modified = ftp_modified,
};
