/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/ftp/ftplist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* The fields in front of the name: eight, drwxr-xr-x 2 user group 4096 Nov 20 21:10 name, or as DOS has it three,
   11-20-26 09:10PM <DIR> name. */
static int fields_of(const char *line)
{
	if (strchr("-dlbcps", line[0]) != NULL && strspn(line + 1, "rwxsStT-") >= 9)
		return 8;
	return line[strspn(line, "0123456789")] == '-' && strspn(line, "0123456789-") >= 8 ? 3 : 0;
}

static const char *name_of(const char *line)
{
	const char *p = line;

	for (int i = fields_of(line); i > 0; i--) {
		p += strcspn(p, " \t");
		p += strspn(p, " \t");
	}
	/* Some servers leave the group out: take the last word. */
	if (*p == '\0') {
		const char *last = strrchr(line, ' ');

		p = last != NULL ? last + 1 : line;
	}
	return p;
}

static bool next_line(const char **text, char *line, size_t size)
{
	size_t n = strcspn(*text, "\r\n");

	if (**text == '\0')
		return false;
	snprintf(line, size, "%.*s", (int)(n < size ? n : size - 1), *text);
	*text += n;
	*text += strspn(*text, "\r\n");
	return true;
}

static bool is_reply_line(const char *line)
{
	return isdigit((unsigned char)line[0]) && isdigit((unsigned char)line[1]) &&
	       isdigit((unsigned char)line[2]) && (line[3] == '-' || line[3] == ' ');
}

/* After a new login its replies stand in front: only the last reply is the listing. */
static const char *last_reply(const char *text)
{
	const char *start = text, *code = NULL;

	while (*text != '\0') {
		if (code != NULL && strncmp(text, code, 3) == 0 && text[3] == ' ') {
			code = NULL;
		} else if (code == NULL && is_reply_line(text)) {
			start = text;
			code = text[3] == '-' ? text : NULL;
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return start;
}

void ftplist_stat(const char *reply, ftplist_name each, void *data)
{
	char line[1024];

	reply = last_reply(reply);
	while (next_line(&reply, line, sizeof line)) {
		bool coded = is_reply_line(line); /* as RFC 2228 has it, also before an entry */
		const char *p = line + (coded ? 4 : 0);

		p += strspn(p, " \t");
		if (*p == '\0' || (coded && fields_of(p) == 0) || strncasecmp(p, "total ", 6) == 0)
			continue;
		each(data, name_of(p));
	}
}

void ftplist_names(const char *body, ftplist_name each, void *data)
{
	char line[1024];

	while (next_line(&body, line, sizeof line)) {
		const char *slash = strrchr(line, '/');

		each(data, slash != NULL ? slash + 1 : line);
	}
}

int ftplist_modify(const char *reply, int64_t *seconds)
{
	const char *p = strcasestr(reply, "modify=");
	struct tm utc = {0};

	if (p == NULL || sscanf(p + 7, "%4d%2d%2d%2d%2d%2d", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour,
			     &utc.tm_min, &utc.tm_sec) != 6)
		return -1;
	utc.tm_year -= 1900;
	utc.tm_mon--;
	*seconds = timegm(&utc);
	return 0;
}
