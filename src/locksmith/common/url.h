/* SPDX-License-Identifier: MIT */
/* locksmith/common/url.h - where a lock is, and the login there:
 * scheme://[user@]host[:port][,host[:port]...]/path */
#ifndef SEMLOCK_LOCKSMITH_COMMON_URL_H
#define SEMLOCK_LOCKSMITH_COMMON_URL_H

#include <stdbool.h>

#include "report/error.h"

#define URL_HOSTS 16

struct url {
	char scheme[24];
	char user[128];            /* "" if none */
	char host[URL_HOSTS][264]; /* each "name", "name:port" or "[v6]:port" */
	unsigned int hosts;
	char path[512]; /* percent-decoded, without the slash after the host */
};

/* Parse TEXT into URL.  PASSWORD says where else to put a password ("set ..."), for the error
 * message.  Returns 0, or -1 with ERROR filled (ERROR_USAGE): no host, no port after a colon, no
 * path, a password in it, control characters, wildcards, or something too long. */
int url_parse(const char *text, const char *password, struct url *url, struct error *error);

/* Put HOST without its port and brackets into NAME (SIZE bytes). */
void url_hostname(const char *host, char *name, unsigned int size);

struct login {
	char user[128]; /* "" if none was named */
	char password[256];
	bool has_password;
};

/* Fill LOGIN: the user is the URL's, else SEMLOCK_USER; the password is SEMLOCK_PASSWORD.  Returns
 * 0, or -1 with ERROR filled (ERROR_USAGE): too long, or a control character. */
int login_find(const struct url *url, struct login *login, struct error *error);

#endif
