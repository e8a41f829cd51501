/* SPDX-License-Identifier: MIT */
/* An FTP server's answers, and URLs: text that semlock-locksmith parses, and builds commands of.  A
 * sign that is read and named again is the same; no part contains the end of a line. */
#include <config.h>

#include <ctype.h>

#include "fuzz.h"
#include "locksmith/common/loop.h"
#include "locksmith/ftp/listing.h"
#include "locksmith/common/url.h"

static struct listing listing;

static void owner_sign(const char *name)
{
	struct owner_sign owner_sign, again;

	if (!sign_parse(name, &owner_sign))
		return;
	MUST(
	    strpbrk(owner_sign.name, "/ \r\n\"*?\\") == NULL && strcmp(owner_sign.name, name) == 0);
	MUST(owner_sign.ttl <= LONGEST_SECONDS && owner_sign.pid >= 0 &&
	     strlen(owner_sign.nonce) == 16);
	again = owner_sign;
	sign_name(&again);
	MUST(sign_parse(again.name, &owner_sign));
	MUST(owner_sign.ttl == again.ttl && owner_sign.beat == again.beat &&
	     owner_sign.pid == again.pid);
	MUST(
	    strcmp(owner_sign.nonce, again.nonce) == 0 && strcmp(owner_sign.host, again.host) == 0);
}

static void each(void *data, const char *name)
{
	(void)data;
	MUST(strpbrk(name, "\r\n") == NULL && strlen(name) < 1024);
	owner_sign(name);
	listing_add(&listing, name);
}

/* Two holders are never seen in one directory. */
static void judge(void)
{
	size_t pipe_holders = 0;

	for (size_t i = 0; i < listing.signs; i++)
		pipe_holders += listing_holds(&listing, &listing.sign[i]);
	MUST(pipe_holders <= 1 && (pipe_holders == 0 || listing.signs == 1));
	MUST(listing_empty(&listing) == (listing.signs + listing.foreign == 0));
}

static void url(const char *text)
{
	struct url url;
	struct error error = {.kind = ERROR_NONE};
	char name[300];

	if (url_parse(text, "", &url, &error) != 0) {
		MUST(error.kind == ERROR_USAGE && error.text[0] != '\0');
		return;
	}
	MUST(url.hosts > 0 && url.hosts <= URL_HOSTS && url.path[0] != '\0');
	for (const char *p = url.path; *p != '\0'; p++)
		MUST((unsigned char)*p >= ' ' && *p != 0x7f);
	for (const char *p = url.user; *p != '\0'; p++)
		MUST((unsigned char)*p >= ' ' && *p != 0x7f);
	for (unsigned int i = 0; i < url.hosts; i++) {
		url_hostname(url.host[i], name, sizeof name);
		MUST(strlen(name) <= strlen(url.host[i]));
	}
}

static void small_things(const char *text)
{
	int64_t seconds, ns;

	MUST(listing_modified(text, &seconds) == 0 || listing_modified(text, &seconds) == -1);
	if (bounded_duration(text, &ns) == 0)
		MUST(ns >= 0 && ns <= 100 * 86400 * SECOND);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	listing_clear(&listing);
	listing_of_stat(text, each, NULL);
	judge();
	listing_clear(&listing);
	listing_of_names(text, each, NULL);
	judge();
	owner_sign(text);
	url(text);
	small_things(text);
	free(text);
	return 0;
}
