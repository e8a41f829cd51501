/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "methods/server/locksmith.h"
#include "methods/server/scheme.h"
#include "methods/server/server.h"

/* Return the length of NAME's scheme if END ("://" or ":") follows it, else 0: 4 if NAME is
 * "ETCD://h/x" and END is "://". */
static size_t scheme_length(const char *name, const char *end)
{
	size_t length =
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

	return isalpha((unsigned char)*name) && length < SCHEME_SIZE &&
	               strncmp(name + length, end, strlen(end)) == 0
	           ? length
	           : 0;
}

static void lower_case(char *scheme, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		scheme[i] = (char)tolower((unsigned char)name[i]);
	scheme[length] = '\0';
}

bool server_mistyped(const char *name)
{
	size_t length = scheme_length(name, ":");
	char scheme[SCHEME_SIZE], path[PATH_MAX];
	const char *directory;

	if (length == 0 || strncmp(name + length, "://", 3) == 0)
		return false;
	lower_case(scheme, name, length);
	for (unsigned n = 0; (directory = locksmith_directory(n)) != NULL; n++) {
		snprintf(path, sizeof path, "%s/%s%s", directory, LOCKSMITH_PREFIX, scheme);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

const struct method *server_method(const char *name)
{
	static struct known {
		struct method method;
		char scheme[SCHEME_SIZE];
		struct known *next;
	} * all;
	size_t length = scheme_length(name, "://");
	struct known *known = all;

	if (length == 0)
		return NULL;
	while (known != NULL &&
	       (strncasecmp(known->scheme, name, length) != 0 || known->scheme[length] != '\0'))
		known = known->next;
	if (known != NULL)
		return &known->method;
	known = calloc(1, sizeof *known);
	if (known == NULL)
		return &method_on_server; /* out of memory: never lock a file of that name */
	lower_case(known->scheme, name, length);
	known->method = method_on_server;
	known->method.name = known->scheme;
	known->next = all;
	all = known;
	return &known->method;
}
