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
	REPLY_REFUSED, /* the server refused the request; its words are in remote->text */
	/* the connection broke or was too slow: the server may have done the request, or do it
	 * later */
	REPLY_UNKNOWN,
	REPLY_FATAL /* another try would not help; remote->error is filled */
};

/* Has the server answered, whatever it said? */
static inline bool reply_is_answer(enum reply reply)
{
	return reply == REPLY_DONE || reply == REPLY_REFUSED;
}

struct remote_dir;

/* All paths are absolute.  A request is given up after ten seconds. */
struct remote_dir_ops {
	const char *protocols; /* the protocols that libcurl may use */
	const char *root;      /* what follows remote->base in a URL, for the root directory */
	/* the first command, after which libcurl knows the login directory */
	const char *login;
	/* Give libcurl the settings of this protocol, and fill remote->base. */
	void (*settings)(struct remote_dir *remote);
	/* What libcurl's result of a request means. */
	enum reply (*verdict)(struct remote_dir *remote, CURLcode result);
	enum reply (*mkdir)(struct remote_dir *remote, const char *path);
	enum reply (*rmdir)(struct remote_dir *remote, const char *path);
	enum reply (*rename)(struct remote_dir *remote, const char *from, const char *to);
	/* Call EACH for every entry.  REPLY_DONE, without any entry, also if the directory is
	 * absent and the server calls that an empty one. */
	enum reply (
	    *list)(struct remote_dir *remote, const char *path, listing_name each, void *data);
	/* REPLY_DONE if path is a directory that is open to us, REPLY_REFUSED if not. */
	enum reply (*enter)(struct remote_dir *remote, const char *path);
	/* Set *SECONDS to the time of the last modification, by the server's own clock.
	 * REPLY_REFUSED if the server does not tell. */
	enum reply (*modified)(struct remote_dir *remote, const char *path, int64_t *seconds);
};

struct remote_dir {
	const struct remote_dir_ops *ops;
	const struct url *url;
	struct transfer transfer;
	struct buffer reply;        /* what the server said to the last request */
	struct buffer body;         /* a listing that came by a transfer of its own */
	char user[400];             /* in the URL: "USER@", percent-encoded, or "" */
	char base[800];             /* the URL without a path */
	char home[512];             /* the login directory */
	int code;                   /* the reply's number, 0 if none came */
	char text[CURL_ERROR_SIZE]; /* the reply's last line, for messages */
	bool unnamed;               /* neither the URL nor the environment names a user */
	bool nobody;   /* libcurl was about to log in as anonymous, though no user was named */
	bool reached;  /* the server has answered at least once */
	int64_t until; /* requests are given up then, however late they began */
	bool no_wait;  /* semlock was called with -n, so UNTIL is near: see LOGIN_DELAY */
	bool no_stat;  /* FTP: STAT does not list a directory on this server */
	struct error error;
};

/* ftpconn.c and sftpconn.c: the two protocols. */
extern const struct remote_dir_ops ftp_ops, sftp_ops;

/* Log in, and give up at the moment UNTIL.  With NO_WAIT, if an FTP server has greeted us and only
 * its answer to the login is missing, give up some seconds later.  Returns REPLY_DONE; otherwise
 * remote->error is filled, even with REPLY_UNKNOWN: the server is full or stopping. */
enum reply remote_dir_open(struct remote_dir *remote, const struct remote_dir_ops *ops,
    const struct url *url, int64_t until, bool no_wait);

/* For the functions of ops: perform COMMANDS as one request, and free them.  COMMANDS NULL: only
 * request what CURLOPT_URL names. */
enum reply remote_dir_perform(struct remote_dir *remote, struct curl_slist *commands);

/* For the functions of ops: aim requests at the directory PATH.  The caller sets CURLOPT_URL to
 * remote->base again afterwards. */
void remote_dir_aim(struct remote_dir *remote, const char *path);

/* Do what ops->list does, by a transfer of its own. */
enum reply remote_dir_names(struct remote_dir *remote, const char *path, listing_name each,
    void *data);

/* Fill remote->error for an error that another try would not mend.  The value of this macro is
 * REPLY_FATAL. */
#define REMOTE_DIR_FATAL(remote, kind, ...) \
	(error_plain(&(remote)->error, kind, __VA_ARGS__), REPLY_FATAL)

void remote_dir_close(struct remote_dir *remote);

#endif
