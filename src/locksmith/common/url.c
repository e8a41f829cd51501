/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/url.h"

/* The characters that a host name may have.  Engines put it into other URLs, without quoting it. */
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

/* Copy LENGTH bytes of TEXT into OUT (SIZE bytes), with %XX decoded.  Returns -1 if they do not
 * fit, or are no printable text. */
static int decode(const char *text, size_t length, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			const char digits[] = {text[i + 1],
			    text[i + 1] != '\0' ? text[i + 2] : '\0', '\0'};

			if (i + 2 >= length || strspn(digits, "0123456789abcdefABCDEF") != 2)
				return -1;
			c = (int)strtol(digits, NULL, 16);
			i += 2;
		}
		/* A newline would end an FTP command and begin another. */
		if (c < ' ' || c == 0x7f || used + 1 >= size)
			return -1;
		out[used++] = (char)c;
	}
	out[used] = '\0';
	return 0;
}

static int url_take_user(const char *text, size_t length, const char *password, struct url *url,
    struct error *error)
{
	if (memchr(text, ':', length) != NULL)
		return error_plain(error, ERROR_USAGE,
		    "a password in a URL can be read by everybody (ps): %s", password);
	if (length == 0 || decode(text, length, url->user, sizeof url->user) != 0)
		return error_plain(error, ERROR_USAGE, "invalid user name in the URL");
	return 0;
}

/* Is TEXT a colon and a port, ":1" to ":65535"? */
static bool is_port(const char *text)
{
	size_t digits = strspn(text + 1, "0123456789");
	long port = strtol(text + 1, NULL, 10);

	return digits > 0 && digits <= 5 && text[digits + 1] == '\0' && port >= 1 && port <= 65535;
}

/* Return the length of "[v6]" at the beginning of TEXT, or 0. */
static size_t in_brackets(const char *text)
{
	const char *end = strchr(text, ']');
	char address[INET6_ADDRSTRLEN];
	struct in6_addr binary;

	if (end == NULL || (size_t)(end - text) > sizeof address)
		return 0;
	memcpy(address, text + 1, (size_t)(end - text) - 1);
	address[end - text - 1] = '\0';
	return inet_pton(AF_INET6, address, &binary) == 1 ? (size_t)(end - text) + 1 : 0;
}

/* Refuse a host that libcurl would read in another way than we do: for example, it takes a colon
 * without a port for port 80. */
static int check_host(const char *host, struct error *error)
{
	size_t name = host[0] == '[' ? in_brackets(host) : strspn(host, HOST_CHARS);

	if (host[0] != '[' && strchr(host, ':') != strrchr(host, ':'))
		return error_plain(error, ERROR_USAGE,
		    "invalid host in the URL (an IPv6 address needs brackets: "
		    "[::1])");
	if (name == 0 || (host[name] != '\0' && host[name] != ':'))
		return error_plain(error, ERROR_USAGE, "invalid host in the URL");
	if (host[name] == ':' && !is_port(host + name))
		return error_plain(error, ERROR_USAGE,
		    "the port in the URL must be a number from 1 to 65535");
	return 0;
}

static int url_take_hosts(const char *text, size_t length, struct url *url, struct error *error)
{
	const char *end = text + length;

	while (text <= end) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t n = (size_t)((comma != NULL ? comma : end) - text);

		if (n == 0 || n >= sizeof url->host[0])
			return error_plain(error, ERROR_USAGE, "invalid host in the URL");
		if (url->hosts == URL_HOSTS)
			return error_plain(error, ERROR_USAGE, "more than %d hosts in the URL",
			    URL_HOSTS);
		memcpy(url->host[url->hosts], text, n);
		url->host[url->hosts][n] = '\0';
		if (check_host(url->host[url->hosts++], error) != 0)
			return -1;
		text += n + 1;
	}
	return 0;
}

static int url_take_path(const char *text, struct url *url, struct error *error)
{
	const char *slash, *name;
	size_t n;

	if (decode(text, strlen(text), url->path, sizeof url->path) != 0)
		return error_plain(error, ERROR_USAGE,
		    "the path in the URL is invalid or too long");
	n = strlen(url->path);
	while (n > 0 && url->path[n - 1] == '/')
		url->path[--n] = '\0';
	if (n == 0)
		return error_plain(error, ERROR_USAGE,
		    "the URL has no path: it must end in the lock's name");
	/* FTP servers take these for wildcards; on etcd # begins a part of the queue. */
	if (strpbrk(url->path, "*?[]{}\"\\#") != NULL)
		return error_plain(error, ERROR_USAGE,
		    "the lock's name must not contain any of * ? # [ ] { } \" \\");
	slash = strrchr(url->path, '/');
	name = slash == NULL ? url->path : slash + 1;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return error_plain(error, ERROR_USAGE,
		    "the URL must end in the lock's name, and %s is none", name);
	return 0;
}

int url_parse(const char *text, const char *password, struct url *url, struct error *error)
{
	const char *host = strstr(text, "://"), *slash, *at;

	*url = (struct url){.hosts = 0};
	if (host == NULL || (size_t)(host - text) >= sizeof url->scheme)
		return error_plain(error, ERROR_USAGE, "this is no URL: %.100s", text);
	for (const char *p = text; p < host; p++)
		url->scheme[p - text] = (char)tolower((unsigned char)*p);
	host += 3;
	slash = strchr(host, '/');
	if (slash == NULL)
		slash = host + strlen(host);
	for (at = slash; at > host && at[-1] != '@'; at--)
		;
	if (at > host) {
		if (url_take_user(host, (size_t)(at - host) - 1, password, url, error) != 0)
			return -1;
		host = at;
	}
	if (url_take_hosts(host, (size_t)(slash - host), url, error) != 0)
		return -1;
	return url_take_path(*slash == '/' ? slash + 1 : slash, url, error);
}

void url_hostname(const char *host, char *name, unsigned int size)
{
	size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");

	snprintf(name, size, "%.*s", (int)(host[0] == '[' ? n - 1 : n),
	    host[0] == '[' ? host + 1 : host);
}

/* Copy the value of the environment variable NAME to INTO, "" if it is not set.  Refuse control
 * characters: CR and LF would end an FTP command and begin another. */
static int take_variable(const char *name, char *into, size_t size, struct error *error)
{
	const char *value = getenv(name);

	for (const char *p = value; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return error_plain(error, ERROR_USAGE, "%s has a control character in it",
			    name);
	if (value != NULL && strlen(value) >= size)
		return error_plain(error, ERROR_USAGE, "%s is too long", name);
	snprintf(into, size, "%s", value != NULL ? value : "");
	return 0;
}

int login_find(const struct url *url, struct login *login, struct error *error)
{
	*login = (struct login){.has_password = getenv("SEMLOCK_PASSWORD") != NULL};
	if (take_variable("SEMLOCK_USER", login->user, sizeof login->user, error) != 0 ||
	    take_variable("SEMLOCK_PASSWORD", login->password, sizeof login->password, error) != 0)
		return -1;
	if (url->user[0] != '\0')
		snprintf(login->user, sizeof login->user, "%s", url->user);
	return 0;
}
