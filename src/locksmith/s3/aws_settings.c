/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/s3/aws_settings.h"

#define BLANKS " \t\r\n"
#define LONGEST_LINE 8192 /* a session token takes some 2000 bytes */

/* Copy TEXT, the value of NAME, into VALUE (SIZE bytes).  Returns 0, or -1 with ERROR filled. */
static int copy_value(const char *name, const char *text, char *value, size_t size,
    struct error *error)
{
	for (const char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return error_plain(error, ERROR_USAGE, "%s has a control character in it",
			    name);
	if (strlen(text) >= size)
		return error_plain(error, ERROR_USAGE, "%s is too long", name);
	memcpy(value, text, strlen(text) + 1);
	return 0;
}

int aws_variable(const char *name, char *value, size_t size, struct error *error)
{
	const char *text = getenv(name);

	return copy_value(name, text != NULL ? text : "", value, size, error);
}

const char *aws_profile(void)
{
	const char *name = getenv("AWS_PROFILE");

	return name != NULL && name[0] != '\0' ? name : "default";
}

/* Cut blanks off both ends of TEXT. */
static char *trimmed(char *text)
{
	size_t length;

	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length > 0 && strchr(BLANKS, text[length - 1]) != NULL)
		text[--length] = '\0';
	return text;
}

/* Is LINE, "[profile NAME]" or "[NAME]", the heading of the profile?  In the config file each name
 * but "default" follows the word "profile". */
static bool is_profile(char *line)
{
	char *name = line + 1, *end = strchr(line, ']');

	if (end == NULL)
		return false;
	*end = '\0';
	name = trimmed(name);
	if (strncmp(name, "profile ", 8) == 0)
		name = trimmed(name + 8);
	return strcmp(name, aws_profile()) == 0;
}

/* The value in LINE, "KEY = VALUE"; NULL: LINE has another key, or none. */
static const char *value_of(char *line, const char *key)
{
	char *equals = strchr(line, '=');

	if (equals == NULL ||
	    /* a nested key begins with a blank, a comment with # or ; */
	    strchr(" \t#;", line[0]) != NULL)
		return NULL;
	*equals = '\0';
	return strcmp(trimmed(line), key) == 0 ? trimmed(equals + 1) : NULL;
}

/* Look for KEY of the profile in the file that the variable VARIABLE names, or else in ~/.aws/NAME,
 * and copy its value.  Returns 0, or -1 with ERROR filled. */
static int look_in(const char *variable, const char *name, const char *key, char *value,
    size_t size, struct error *error)
{
	static char line[LONGEST_LINE];
	const char *path = getenv(variable), *home = getenv("HOME"), *found = NULL;
	char own[4096];
	bool in_profile = false;
	int copied;
	FILE *file;

	snprintf(own, sizeof own, "%s/.aws/%s", home != NULL ? home : "", name);
	if (path == NULL || path[0] == '\0')
		path = own;
	file = fopen(path, "re");
	if (file == NULL)
		return errno == ENOENT || errno == ENOTDIR
		           ? 0
		           : error_set(error, ERROR_PERMISSION, "cannot read %.200s", path);
	while (found == NULL && fgets(line, sizeof line, file) != NULL) {
		if (line[0] == '[')
			in_profile = is_profile(line);
		else if (in_profile)
			found = value_of(line, key);
	}
	copied = found != NULL ? copy_value(key, found, value, size, error) : 0;
	explicit_bzero(line, sizeof line);
	fclose(file);
	return copied;
}

int aws_profile_value(const char *key, char *value, size_t size, struct error *error)
{
	value[0] = '\0';
	if (look_in("AWS_SHARED_CREDENTIALS_FILE", "credentials", key, value, size, error) != 0)
		return -1;
	return value[0] != '\0' ? 0 : look_in("AWS_CONFIG_FILE", "config", key, value, size, error);
}

/* Copy the value of the variable FIRST, or else of SECOND, or else of KEY in the profile. */
static int find(const char *first, const char *second, const char *key, char *value, size_t size,
    struct error *error)
{
	if (aws_variable(first, value, size, error) != 0)
		return -1;
	if (value[0] == '\0' && aws_variable(second, value, size, error) != 0)
		return -1;
	return value[0] != '\0' ? 0 : aws_profile_value(key, value, size, error);
}

/* Is TEXT "http[s]://HOST[:PORT]"?  Cuts off a slash at its end; a path is refused. */
static bool is_endpoint(char *text)
{
	char *host = strstr(text, "://");
	size_t length;

	if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0)
		return false;
	host += 3;
	length = strcspn(host, "/");
	if (length == 0 || strspn(host + length, "/") != strlen(host + length))
		return false;
	host[length] = '\0';
	return strpbrk(host, "@?# \"\\") == NULL;
}

int aws_place_find(struct aws_place *place, struct error *error)
{
	if (find("AWS_REGION", "AWS_DEFAULT_REGION", "region", place->region, sizeof place->region,
		error) != 0 ||
	    find("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "endpoint_url", place->endpoint,
		sizeof place->endpoint, error) != 0)
		return -1;
	if (place->region[0] == '\0')
		snprintf(place->region, sizeof place->region, "us-east-1");
	/* The region becomes a part of a host's name. */
	if (place->region[strspn(place->region, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
		return error_plain(error, ERROR_USAGE, "this is no region of AWS: %s",
		    place->region);
	if (place->endpoint[0] != '\0' && !is_endpoint(place->endpoint))
		return error_plain(error, ERROR_USAGE,
		    "the endpoint must be http[s]://HOST[:PORT], not %s", place->endpoint);
	return 0;
}
