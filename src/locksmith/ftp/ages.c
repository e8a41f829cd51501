#include <config.h>

#include "locksmith/ftp/ages.h"

#include "locksmith/common/clock.h"

#include <string.h>

/* Beyond the ttl: the grain of the clocks, and a little more. */
#define MARGIN NS_PER_S

void ages_forget(struct ages *s)
{
	s->count = 0;
	s->empty_since = NEVER;
}

static const struct age *find_age(const struct ages *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->seen[i].name, name) == 0)
			return &s->seen[i];
	return NULL;
}

void ages_update(struct ages *s, const struct listing *l, int64_t now)
{
	static struct ages fresh;

	fresh.count = 0;
	for (size_t i = 0; i < l->tokens; i++) {
		const struct age *known = find_age(s, l->token[i].name);
		struct age *entry = &fresh.seen[fresh.count++];

		memcpy(entry->name, l->token[i].name, sizeof entry->name);
		entry->since = known != NULL ? known->since : now;
	}
	if (listing_empty(l))
		fresh.empty_since = s->empty_since != NEVER ? s->empty_since : now;
	else
		fresh.empty_since = NEVER;
	*s = fresh;
}

const struct owner_token *ages_silent(
    const struct ages *s, const struct listing *l, int64_t asked)
{
	for (size_t i = 0; i < l->tokens; i++) {
		const struct age *known = find_age(s, l->token[i].name);
		int64_t promised = (int64_t)l->token[i].ttl * NS_PER_S + MARGIN;

		if (known != NULL && asked - known->since > promised)
			return &l->token[i];
	}
	return NULL;
}
