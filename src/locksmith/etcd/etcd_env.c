/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcd_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_URL 6000

const char *etcd_env_variable(const char *name)
{
	char variable[40];
	const char *value;

	snprintf(variable, sizeof variable, "ETCDCTL_%s", name);
	value = getenv(variable);
	if (value != NULL && value[0] != '\0')
		return value;
	snprintf(variable, sizeof variable, "SEMLOCK_%s", name);
	value = getenv(variable);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The hosts of "http://a:1,http://b:1", of which all or none are https, into hosts. */
static int take_endpoints(const char *list, char *hosts, size_t size, bool *tls)
{
	unsigned int with = 0, all = 0;
	size_t used = 0;

	for (const char *at = list; *at != '\0'; all++) {
		size_t length;

		with += strncmp(at, "https://", 8) == 0;
		if (strncmp(at, "http://", 7) == 0 || strncmp(at, "https://", 8) == 0)
			at = strstr(at, "://") + 3;
		length = strcspn(at, ",");
		if (used + length + 2 > size || memchr(at, '/', length) != NULL)
			return -1;
		used += (size_t)snprintf(
		    hosts + used, size - used, "%s%.*s", all > 0 ? "," : "", (int)length, at);
		at += length + (at[length] == ',');
	}
	*tls = with > 0;
	return with == 0 || with == all ? 0 : -1;
}

int etcd_env_url(const char *text, struct url *url, struct error *error)
{
	const char *list = getenv("ETCDCTL_ENDPOINTS"), *from = strstr(text, "://"), *path;
	char hosts[LONGEST_URL / 2], whole[LONGEST_URL];
	bool tls;

	if (from == NULL)
		return url_parse(text, url, error);
	from += 3;
	path = from + strcspn(from, "/");
	if (path > from && path[-1] != '@')
		return url_parse(text, url, error);
	if (list == NULL || list[0] == '\0')
		list = "127.0.0.1:2379";
	if (take_endpoints(list, hosts, sizeof hosts, &tls) != 0)
		return error_plain(error, ERROR_USAGE,
		    "ETCDCTL_ENDPOINTS is to be [http://]HOST:PORT,..., or https:// for all");
	if (strlen(text) >= sizeof whole - sizeof hosts - 10)
		return error_plain(error, ERROR_USAGE, "the URL is too long");
	snprintf(whole, sizeof whole, "%s%.*s%s%s",
	    tls ? "etcds://" : "", (int)(tls ? path - from : path - text), tls ? from : text, hosts,
	    path);
	return url_parse(whole, url, error);
}

/* The password of ETCDCTL_USER is that user's alone. */
static int etcd_env_take_user(const char *value, const struct url *url, struct login *login, struct error *error)
{
	size_t length = strcspn(value, ":");
	bool same = url->user[0] == '\0' ||
		    (strlen(url->user) == length && strncmp(url->user, value, length) == 0);

	if (length >= sizeof login->user || strlen(value) - length > sizeof login->password)
		return error_plain(error, ERROR_USAGE, "ETCDCTL_USER is too long");
	if (!same)
		return 0;
	snprintf(login->user, sizeof login->user, "%.*s", (int)length, value);
	if (value[length] == ':') {
		snprintf(login->password, sizeof login->password, "%s", value + length + 1);
		login->has_password = true;
	}
	return 0;
}

int etcd_env_login(const struct url *url, struct login *login, struct error *error)
{
	const char *user = getenv("ETCDCTL_USER"), *password = getenv("ETCDCTL_PASSWORD");

	if (login_find(url, login, error) != 0)
		return -1;
	if (password != NULL && strlen(password) >= sizeof login->password)
		return error_plain(error, ERROR_USAGE, "ETCDCTL_PASSWORD is too long");
	if (password != NULL) {
		snprintf(login->password, sizeof login->password, "%s", password);
		login->has_password = true;
	}
	return user != NULL ? etcd_env_take_user(user, url, login, error) : 0;
}
