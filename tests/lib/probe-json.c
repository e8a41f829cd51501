/* SPDX-License-Identifier: MIT */
/* probe-json.c - a strict reader of JSON, for the output of --who --json. */
#include <config.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "probe.h"

static char text[1 << 22];
static const char *at;
static char path[4096];

static void wrong(const char *what)
{
	fprintf(stderr, "probe: not JSON: %s at byte %ld: %.40s\n", what, (long)(at - text), at);
	exit(1);
}

static void blanks(void)
{
	at += strspn(at, " \t\r\n");
}

static void take(char c)
{
	blanks();
	if (*at != c)
		wrong("something else was expected");
	at++;
}

/* The bytes between the quotes, as they are written. */
static void string(char *word, size_t size)
{
	size_t used = 0;

	take('"');
	while (*at != '"') {
		if ((unsigned char)*at < 0x20)
			wrong("a control character in a string");
		if (*at == '\\' && strchr("\"\\/bfnrtu", at[1]) == NULL)
			wrong("an unknown escape");
		if (*at == '\\' && at[1] == 'u' && strspn(at + 2, "0123456789abcdefABCDEF") < 4)
			wrong("a bad \\u");
		if (*at == '\\' && used < size - 2)
			word[used++] = *at++;
		if (used < size - 1)
			word[used++] = *at;
		at++;
	}
	word[used] = '\0';
	at++;
}

static void value(void);

static void inside(const char *step)
{
	size_t length = strlen(path);

	snprintf(path + length, sizeof path - length, "%s", step);
	value();
	path[length] = '\0';
}

static void object(void)
{
	char key[256], step[300];

	take('{');
	do {
		blanks();
		string(key, sizeof key);
		take(':');
		snprintf(step, sizeof step, ".%s", key);
		inside(step);
		blanks();
	} while (*at == ',' && at++);
	take('}');
}

static void array(void)
{
	char step[32];
	int n = 0;

	take('[');
	blanks();
	if (*at != ']')
		do {
			snprintf(step, sizeof step, "[%d]", n++);
			inside(step);
			blanks();
		} while (*at == ',' && at++);
	take(']');
	printf("%s array %d\n", path, n);
}

static void word(void)
{
	static const char *const words[] = {"true", "false", "null"};

	for (int i = 0; i < 3; i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0) {
			at += strlen(words[i]);
			printf("%s %s\n", path,
			    i == 2   ? "null"
			    : i == 0 ? "boolean true"
				     : "boolean false");
			return;
		}
	wrong("a value was expected");
}

static void value(void)
{
	static char content[1 << 16];
	size_t length;

	blanks();
	if (*at == '{') {
		object();
	} else if (*at == '[') {
		array();
	} else if (*at == '"') {
		string(content, sizeof content);
		printf("%s string %s\n", path, content);
	} else if (*at == '-' || isdigit((unsigned char)*at)) {
		length = strspn(at, "-+.0123456789eE");
		printf("%s number %.*s\n", path, (int)length, at);
		at += length;
	} else {
		word();
	}
}

/* json <TEXT: each value on a line, as PATH TYPE VALUE; 1 and a message when it is not JSON. */
int cmd_json(int argc, char **argv)
{
	size_t n;

	(void)argv;
	if (argc != 1)
		misuse("json <TEXT");
	n = fread(text, 1, sizeof text - 1, stdin);
	text[n] = '\0';
	at = text;
	value();
	blanks();
	if (*at != '\0')
		wrong("something stands behind it");
	return 0;
}
