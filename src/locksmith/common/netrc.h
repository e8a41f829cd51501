/* netrc - login and password of a host, out of a ~/.netrc. */
#ifndef LOCKSMITH_NETRC_H
#define LOCKSMITH_NETRC_H

#include <stddef.h>

struct netrc_entry {
	char login[128];
	char password[256];
};

/* Looks in the text of a netrc file for host ("machine HOST", else "default"). user, unless "",
   must be the entry's login. Fills *found. 0, or -1 if there is no such entry. Tokens may be in
   double quotes; macro definitions are passed over. */
int netrc_find(const char *text, const char *host, const char *user, struct netrc_entry *found);

#endif
