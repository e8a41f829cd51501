/* login - who we are on the server: from the URL, the environment, and ~/.netrc; never from argv.
 */
#ifndef LOCKSMITH_LOGIN_H
#define LOCKSMITH_LOGIN_H

#include "locksmith/common/url.h"
#include "locksmith/common/why.h"

#include <stdbool.h>

struct login {
	char user[128]; /* "" if nobody said */
	char password[256];
	bool has_password;
};

/* The user is the URL's, else SEMLOCK_USER, else the netrc entry's; the password is
   SEMLOCK_PASSWORD, else the netrc entry's (file: NETRC, else ~/.netrc). Warns on standard error of
   a netrc that others can read. 0, or -1 with *why filled when something is there but too long or
   unreadable. */
int login_find(const struct url *url, struct login *login, struct why *why);

#endif
