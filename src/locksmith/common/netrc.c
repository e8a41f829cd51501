#include <config.h>

#include "locksmith/common/netrc.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Copies the next word at *text into word and moves *text behind it. false at the end. */
static bool next(const char **text, char *word, size_t size)
{
	const char *p = *text;
	size_t used = 0;
	bool quoted;

	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (*p != '#')
			break;
		p += strcspn(p, "\n");
	}
	if (*p == '\0')
		return false;
	quoted = *p == '"';
	if (quoted)
		p++;
	while (*p != '\0' && (quoted ? *p != '"' : !isspace((unsigned char)*p))) {
		if (quoted && *p == '\\' && p[1] != '\0')
			p++;
		if (used + 1 < size)
			word[used++] = *p;
		p++;
	}
	word[used] = '\0';
	*text = *p == '"' && quoted ? p + 1 : p;
	return true;
}

/* A macro goes on to the next empty line. */
static void skip_macro(const char **text)
{
	const char *end = strstr(*text, "\n\n");

	*text = end != NULL ? end + 2 : *text + strlen(*text);
}

int netrc_find(const char *text, const char *host, const char *user, struct netrc_entry *found)
{
	struct netrc_entry entry = {"", ""};
	char word[256];
	bool ours = false;

	for (;;) {
		bool more = next(&text, word, sizeof word);
		bool machine = more && strcmp(word, "machine") == 0;

		if (!more || machine || strcmp(word, "default") == 0) {
			/* An entry ends where the next one begins. */
			if (ours && (user[0] == '\0' || strcmp(user, entry.login) == 0)) {
				*found = entry;
				return 0;
			}
			if (!more)
				return -1;
			entry = (struct netrc_entry){"", ""};
			ours = !machine;
			if (machine && next(&text, word, sizeof word))
				ours = strcasecmp(word, host) == 0;
		} else if (strcmp(word, "login") == 0) {
			next(&text, entry.login, sizeof entry.login);
		} else if (strcmp(word, "password") == 0) {
			next(&text, entry.password, sizeof entry.password);
		} else if (strcmp(word, "account") == 0) {
			next(&text, word, sizeof word);
		} else if (strcmp(word, "macdef") == 0) {
			skip_macro(&text);
		}
	}
}
