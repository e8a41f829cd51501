/* SPDX-License-Identifier: MIT */
/* locksmith/s3/aws_login.h - the key and the secret by which requests are signed. */
#ifndef SEMLOCK_LOCKSMITH_S3_AWS_LOGIN_H
#define SEMLOCK_LOCKSMITH_S3_AWS_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "report/error.h"

struct aws_login {
	char key[160];
	char secret[256];
	char session[4608]; /* the session token of a login that lapses; "": none */
};

/* Fill *LOGIN from the first of these that exists: AWS_ACCESS_KEY_ID and its companions,
 * SEMLOCK_USER and SEMLOCK_PASSWORD, the profile, its credential_process, the container's role, or
 * the instance's.  Call this for each request: it fetches a login that lapses anew in time.  UNTIL:
 * the moment at which a role's answer is too late.  Returns 0, or -1 with ERROR filled:
 * ERROR_PERMISSION: there is none; ERROR_AWAY: the service that gives the role's login does not
 * answer. */
int aws_login_find(struct aws_login *login, int64_t until, struct error *error);

/* Forget a role's login, which the server accepts no longer: the next aws_login_find() fetches
 * another.  Returns false if the login is no role's, and would be the same again. */
bool aws_login_forget(void);

#endif
