/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/ftp/listing.h"

#include "locksmith/common/loop.h"

#include <string.h>
#include <strings.h>

/* Beyond the ttl: the grain of the clocks, and a little more. */
#define MARGIN SECOND

void listing_clear(struct listing *l)
{
	l->signs = 0;
	l->foreign = 0;
	l->empty_since = NEVER;
}

void listing_add(struct listing *l, const char *name)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (l->signs < LISTING_MOST && sign_parse(name, &l->sign[l->signs]))
		l->signs++;
	else
		l->foreign++;
}

bool listing_empty(const struct listing *l)
{
	return l->signs == 0 && l->foreign == 0;
}

const struct owner_sign *listing_find(const struct listing *l, const char *name)
{
	for (size_t i = 0; i < l->signs; i++)
		if (strcasecmp(l->sign[i].name, name) == 0)
			return &l->sign[i];
	return NULL;
}

void listing_note_ages(struct listing *l, const struct listing *before, int64_t now)
{
	for (size_t i = 0; i < l->signs; i++) {
		const struct owner_sign *known = listing_find(before, l->sign[i].name);

		l->sign[i].since = known != NULL ? known->since : now;
	}
	if (listing_empty(l))
		l->empty_since = before->empty_since != NEVER ? before->empty_since : now;
}

const struct owner_sign *listing_silent(const struct listing *l, int64_t asked)
{
	for (size_t i = 0; i < l->signs; i++)
		if (asked - l->sign[i].since > (int64_t)l->sign[i].ttl * SECOND + MARGIN)
			return &l->sign[i];
	return NULL;
}

bool listing_holds(const struct listing *l, const struct owner_sign *mine)
{
	return l->signs == 1 && l->foreign == 0 && listing_find(l, mine->name) != NULL;
}
