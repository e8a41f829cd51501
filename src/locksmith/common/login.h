/* locksmith/common/login.h - the user and the password for the server: from the URL and the environment; never from argv. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_LOGIN_H
#define SEMLOCK_LOCKSMITH_COMMON_LOGIN_H

#include "locksmith/common/url.h"
#include "locksmith/common/failure.h"

#include <stdbool.h>

struct login {
	char user[128]; /* "" if nobody said */
	char password[256];
	bool has_password;
};

/* The user is the URL's, else SEMLOCK_USER; the password is SEMLOCK_PASSWORD. 0, or -1 with *failure
   filled (EXIT_USAGE): too long, or a control character. */
int login_find(const struct url *url, struct login *login, struct failure *failure);

#endif
