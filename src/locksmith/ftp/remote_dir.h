/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/remote_dir.h - directories on a server, by FTP or SFTP. */
#ifndef SEMLOCK_LOCKSMITH_FTP_REMOTE_DIR_H
#define SEMLOCK_LOCKSMITH_FTP_REMOTE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/common/url.h"
#include "locksmith/curl/buffer.h"
#include "locksmith/curl/transfer.h"
#include "locksmith/ftp/listing.h"
#include "report/error.h"

/* What became of a request. */
enum reply {
	REPLY_DONE,
	REPLY_REFUSED, /* the server did not do it; its words are in text */
	/* the connection broke or was too slow: the server may have done the request, or do it
	 * later */
	REPLY_UNKNOWN,
	REPLY_FATAL /* no use in trying again: error is filled */
};

/* Has the server answered, whatever it said? */
static inline bool reply_is_answer(enum reply reply)
{
	return reply == REPLY_DONE || reply == REPLY_REFUSED;
}

struct remote_dir;

/* All paths are absolute.  A request is given up after ten seconds. */
struct remote_dir_ops {
	const char *protocols; /* of libcurl */
	const char *root;      /* the root directory in a URL, after remote->base */
	/* the first command, after which libcurl knows the login directory */
	const char *login;
	/* Give libcurl the settings of this protocol, and fill remote->base. */
	void (*settings)(struct remote_dir *remote);
	/* What libcurl's result of a request means. */
	enum reply (*verdict)(struct remote_dir *remote, CURLcode result);
	enum reply (*mkdir)(struct remote_dir *remote, const char *path);
	enum reply (*rmdir)(struct remote_dir *remote, const char *path);
	enum reply (*rename)(struct remote_dir *remote, const char *from, const char *to);
	/* Call EACH for every entry.  DONE also when the directory is absent and the server calls
	 * that empty. */
	enum reply (
	    *list)(struct remote_dir *remote, const char *path, listing_name each, void *data);
	/* DONE if path is a directory that is open to us, REFUSED if not. */
	enum reply (*enter)(struct remote_dir *remote, const char *path);
	/* Last modification by the server's own clock, in seconds.  REFUSED if the server tells
	 * none. */
	enum reply (*modified)(struct remote_dir *remote, const char *path, int64_t *seconds);
};

struct remote_dir {
	const struct remote_dir_ops *ops;
	const struct url *url;
	struct transfer transfer;
	struct buffer reply;        /* what the server said to the last request */
	struct buffer body;         /* a listing that came over a connection of its own */
	char user[400];             /* in the URL: "USER@", percent-encoded, or "" */
	char base[800];             /* the URL without a path */
	char home[512];             /* the login directory */
	int code;                   /* the reply's number, 0 if none came */
	char text[CURL_ERROR_SIZE]; /* the reply's last line, for messages */
	bool unnamed;               /* neither the URL nor the environment names a user */
	bool nobody;                /* libcurl was about to log in as anonymous, unasked */
	bool reached;               /* the server has answered at least once */
	int64_t until;              /* requests are given up then, however late they began */
	bool no_wait;               /* and UNTIL is near: see LOGIN_DELAY */
	bool no_stat;               /* FTP: STAT does not list here */
	struct error error;
};

/* ftpconn.c and sftpconn.c: the two protocols. */
extern const struct remote_dir_ops ftp_ops, sftp_ops;

/* Log in, and give up at the moment UNTIL; with NO_WAIT some seconds later, if an FTP server has
 * greeted us, and only its answer to the login is missing.  Returns REPLY_DONE, or another reply
 * with remote->error filled (even REPLY_UNKNOWN: the server is overloaded). */
enum reply remote_dir_open(struct remote_dir *remote, const struct remote_dir_ops *ops,
    const struct url *url, int64_t until, bool no_wait);

/* For the functions of ops: perform COMMANDS as one request, and free them; NULL: request what the
 * URL says. */
enum reply remote_dir_perform(struct remote_dir *remote, struct curl_slist *commands);

/* For them, too: requests go to the directory PATH until CURLOPT_URL is set to remote->base
 * again. */
void remote_dir_aim(struct remote_dir *remote, const char *path);

/* The operation list, by a transfer of its own. */
enum reply remote_dir_names(struct remote_dir *remote, const char *path, listing_name each,
    void *data);

/* Fill remote->error with an error that another try would not mend.  The value is REPLY_FATAL. */
#define REMOTE_DIR_FATAL(remote, kind, ...) \
	(error_plain(&(remote)->error, kind, __VA_ARGS__), REPLY_FATAL)

void remote_dir_close(struct remote_dir *remote);

#endif
