/* SPDX-License-Identifier: MIT */
/* locksmith/s3/aws_login.h - the key and the secret with which requests are signed. */
#ifndef SEMLOCK_LOCKSMITH_S3_AWS_LOGIN_H
#define SEMLOCK_LOCKSMITH_S3_AWS_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "report/error.h"

struct aws_login {
	char key[160];
	char secret[256];
	char session[4608]; /* the session token, if the login lapses; "": none */
};

/* Fill *LOGIN from the first of these that exists: AWS_ACCESS_KEY_ID and its companions,
 * SEMLOCK_USER and SEMLOCK_PASSWORD, the profile, its credential_process, the container's role, or
 * the instance's.  Call this before each request, because it replaces a login that is about to
 * lapse.  A service that gives a role's login must answer by the moment UNTIL.  Returns 0, or -1
 * with ERROR filled: ERROR_PERMISSION if there is no login, ERROR_AWAY if such a service does not
 * answer. */
int aws_login_find(struct aws_login *login, int64_t until, struct error *error);

/* Forget a role's login, because the server no longer accepts it: the next aws_login_find() fetches
 * another.  Returns false if the present login is not a role's: another try would find the same
 * one. */
bool aws_login_forget(void);

#endif
