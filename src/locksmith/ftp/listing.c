#include <config.h>

#include "locksmith/ftp/listing.h"

#include "locksmith/common/clock.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

/* Beyond the ttl: the grain of the clocks, and a little more. */
#define MARGIN NS_PER_S
#define ANY_SLOT UINT_MAX

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

/* The tokens of that mode and, unless slot is ANY_SLOT, of that slot. */
static size_t count(const struct listing *l, char mode, unsigned int slot)
{
	size_t n = 0;

	for (size_t i = 0; i < l->tokens; i++)
		n += l->token[i].mode == mode && (slot == ANY_SLOT || l->token[i].slot == slot);
	return n;
}

bool listing_may_join(const struct listing *l, char mode, unsigned int slots, unsigned int *slot)
{
	/* An empty directory is a plain client's, or belongs to a client between A1 and A2. */
	if (mode == 'x' || l->foreign > 0 || l->tokens == 0 || count(l, mode, ANY_SLOT) != l->tokens)
		return false;
	if (mode == 's')
		return true;
	for (*slot = 0; *slot < slots; ++*slot)
		if (count(l, 'n', *slot) == 0)
			return true;
	return false;
}

bool listing_holds(const struct listing *l, const struct owner_token *mine)
{
	if (l->foreign > 0 || listing_find(l, mine->name) == NULL)
		return false;
	if (mine->mode == 'x')
		return l->tokens == 1;
	if (count(l, mine->mode, ANY_SLOT) != l->tokens)
		return false;
	/* N slot numbers, each held once: no more than N can hold. */
	return mine->mode == 's' || count(l, 'n', mine->slot) == 1;
}
