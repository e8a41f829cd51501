/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: a resolver that knows the host db.test, which is 127.0.0.1; while there is a file
 * no-dns, it does not answer for eight seconds, and then fails. */
#include <config.h>

#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *restrict node, const char *restrict service,
    const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
	resolver *real;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (node != NULL && strcmp(node, "db.test") == 0) {
		if (access("no-dns", F_OK) == 0) {
			sleep(8);
			return EAI_AGAIN;
		}
		node = "127.0.0.1";
	}
	return real(node, service, hints, result);
}
