/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/ftp/listing.h"

#include "locksmith/common/clock.h"

#include <string.h>
#include <strings.h>

/* Beyond the ttl: the grain of the clocks, and a little more. */
#define MARGIN NS_PER_S

void listing_clear(struct listing *l)
{
	l->tokens = 0;
	l->foreign = 0;
	l->empty_since = NEVER;
}

void listing_add(struct listing *l, const char *name)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (l->tokens < LISTING_MOST && token_parse(name, &l->token[l->tokens]))
		l->tokens++;
	else
		l->foreign++;
}

bool listing_empty(const struct listing *l)
{
	return l->tokens == 0 && l->foreign == 0;
}

const struct owner_token *listing_find(const struct listing *l, const char *name)
{
	for (size_t i = 0; i < l->tokens; i++)
		if (strcasecmp(l->token[i].name, name) == 0)
			return &l->token[i];
	return NULL;
}

void listing_note_ages(struct listing *l, const struct listing *before, int64_t now)
{
	for (size_t i = 0; i < l->tokens; i++) {
		const struct owner_token *known = listing_find(before, l->token[i].name);

		l->token[i].since = known != NULL ? known->since : now;
	}
	if (listing_empty(l))
		l->empty_since = before->empty_since != NEVER ? before->empty_since : now;
}

const struct owner_token *listing_silent(const struct listing *l, int64_t asked)
{
	for (size_t i = 0; i < l->tokens; i++)
		if (asked - l->token[i].since > (int64_t)l->token[i].ttl * NS_PER_S + MARGIN)
			return &l->token[i];
	return NULL;
}

bool listing_holds(const struct listing *l, const struct owner_token *mine)
{
	return l->tokens == 1 && l->foreign == 0 && listing_find(l, mine->name) != NULL;
}
