/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/listing.h"

/* ---- signs ---- */

#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

void sign_name(struct owner_sign *sign)
{
	snprintf(sign->name, sizeof sign->name, "sl1.x.%u.%lu.%s.%ld.%s", sign->ttl, sign->beat,
	    sign->nonce, sign->pid, sign->host);
}

void sign_make(struct owner_sign *sign, unsigned int ttl, long pid)
{
	uint64_t random_bits;

	*sign = (struct owner_sign){.ttl = ttl, .pid = pid};
	random_bytes(&random_bits, sizeof random_bits);
	snprintf(sign->nonce, sizeof sign->nonce, "%016" PRIx64, random_bits);
	if (gethostname(sign->host, sizeof sign->host - 1) != 0 || sign->host[0] == '\0')
		strcpy(sign->host, "unknown");
	for (unsigned char *at = (unsigned char *)sign->host; *at != '\0'; at++)
		*at = isalnum(*at) || *at == '.' || *at == '-' ? (unsigned char)tolower(*at) : '-';
	sign_name(sign);
}

/* Read a number of at most MOST, which a dot follows, and move *TEXT past the dot. */
static bool read_number(const char **text, unsigned long most, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(*text, &end, 10);
	if (!isdigit((unsigned char)**text) || *end != '.' || errno != 0 || *number > most)
		return false;
	*text = end + 1;
	return true;
}

/* NAME is that of a sign if the fields in it make the same name again. */
bool sign_parse(const char *name, struct owner_sign *sign)
{
	const char *rest = name + strlen("sl1.x.");
	unsigned long ttl, pid;

	*sign = (struct owner_sign){.ttl = 0};
	/* The name becomes part of FTP commands: allow no characters but those of a sign. */
	if (strncasecmp(name, "sl1.x.", 6) != 0 || !read_number(&rest, LONGEST_SECONDS, &ttl) ||
	    !read_number(&rest, ULONG_MAX, &sign->beat) ||
	    sscanf(rest, "%16[0-9a-fA-F].", sign->nonce) != 1 || strlen(sign->nonce) != 16 ||
	    rest[16] != '.')
		return false;
	rest += 17;
	if (!read_number(&rest, INT32_MAX, &pid) ||
	    sscanf(rest, "%64[" HOST_CHARS "]", sign->host) != 1)
		return false;
	sign->ttl = (unsigned)ttl;
	sign->pid = (long)pid;
	sign_name(sign);
	if (strcasecmp(sign->name, name) != 0)
		return false;
	strcpy(sign->name, name);
	return true;
}

/* ---- listings ---- */

/* added to the ttl, for the time that a request takes on its way */
#define MARGIN SECOND

void listing_clear(struct listing *listing)
{
	listing->signs = 0;
	listing->foreign = 0;
	listing->empty_since = NEVER;
}

void listing_add(void *data, const char *name)
{
	struct listing *listing = data;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (listing->signs < LISTING_MOST && sign_parse(name, &listing->sign[listing->signs]))
		listing->signs++;
	else
		listing->foreign++;
}

bool listing_empty(const struct listing *listing)
{
	return listing->signs == 0 && listing->foreign == 0;
}

const struct owner_sign *listing_find(const struct listing *listing, const char *name)
{
	for (size_t i = 0; i < listing->signs; i++)
		if (strcasecmp(listing->sign[i].name, name) == 0)
			return &listing->sign[i];
	return NULL;
}

void listing_note_ages(struct listing *listing, const struct listing *before, int64_t now)
{
	for (size_t i = 0; i < listing->signs; i++) {
		const struct owner_sign *known = listing_find(before, listing->sign[i].name);

		listing->sign[i].since = known != NULL ? known->since : now;
	}
	if (listing_empty(listing))
		listing->empty_since = before->empty_since != NEVER ? before->empty_since : now;
}

const struct owner_sign *listing_silent(const struct listing *listing, int64_t asked)
{
	for (size_t i = 0; i < listing->signs; i++)
		if (asked - listing->sign[i].since >
		    (int64_t)listing->sign[i].ttl * SECOND + MARGIN)
			return &listing->sign[i];
	return NULL;
}

bool listing_holds(const struct listing *listing, const struct owner_sign *mine)
{
	return listing->signs == 1 && listing->foreign == 0 &&
	       listing_find(listing, mine->name) != NULL;
}

/* ---- the text of a server ---- */

/* How many fields precede the name: eight in "drwxr-xr-x 2 user group 4096 Nov 20 21:10 name";
 * three in "11-20-26 09:10PM <DIR> name", as DOS has it; none in a bare name. */
static int fields_of(const char *line)
{
	if (strchr("-dlbcps", line[0]) != NULL && strspn(line + 1, "rwxsStT-") >= 9)
		return 8;
	return line[strspn(line, "0123456789")] == '-' && strspn(line, "0123456789-") >= 8 ? 3 : 0;
}

static const char *name_of(const char *line)
{
	const char *at = line;

	for (int i = fields_of(line); i > 0; i--) {
		at += strcspn(at, " \t");
		at += strspn(at, " \t");
	}
	/* Some servers leave the group out: take the last word. */
	if (*at == '\0') {
		const char *last = strrchr(line, ' ');

		at = last != NULL ? last + 1 : line;
	}
	return at;
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

/* Return the beginning of the last reply in TEXT: it is the listing.  If libcurl had to log in
 * again, the replies to that come first. */
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

void listing_of_stat(const char *reply, listing_name each, void *data)
{
	char line[1024];

	reply = last_reply(reply);
	while (next_line(&reply, line, sizeof line)) {
		/* RFC 2228: an entry of the listing may begin with the reply's number, too */
		bool coded = is_reply_line(line);
		const char *at = line + (coded ? 4 : 0);

		at += strspn(at, " \t");
		if (*at == '\0' || (coded && fields_of(at) == 0) ||
		    strncasecmp(at, "total ", 6) == 0)
			continue;
		each(data, name_of(at));
	}
}

void listing_of_names(const char *body, listing_name each, void *data)
{
	char line[1024];

	while (next_line(&body, line, sizeof line)) {
		const char *slash = strrchr(line, '/');

		each(data, slash != NULL ? slash + 1 : line);
	}
}

int listing_modified(const char *reply, int64_t *seconds)
{
	const char *at = strcasestr(reply, "modify=");
	struct tm utc = {0};

	if (at == NULL || sscanf(at + 7, "%4d%2d%2d%2d%2d%2d", &utc.tm_year, &utc.tm_mon,
			      &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec) != 6)
		return -1;
	utc.tm_year -= 1900;
	utc.tm_mon--;
	*seconds = timegm(&utc);
	return 0;
}
