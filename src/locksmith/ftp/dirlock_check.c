/* Tries, in a directory of its own, the operations that the protocol needs. Finds gateways that accept
   every MKD, servers that remove full directories, and servers that remove none. */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/ftp/dirlock.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <string.h>

struct trial {
	struct dirlock *k;
	bool fit;
};

static bool trial_expect(struct trial *t, const char *what, enum reply got, enum reply wanted)
{
	if (got == wanted)
		say("CHECK ok %s", what);
	else if (got == REPLY_DONE)
		say("CHECK no %s: the server did it", what);
	else
		say("CHECK no %s: %s", what, t->k->remote_dir.text);
	t->fit = t->fit && got == wanted;
	return got == wanted;
}

static void trial_lists(struct trial *t, const char *what, const struct owner_token *wanted)
{
	struct dirlock *k = t->k;
	enum reply reply = dirlock_look(k);
	bool right = reply == REPLY_DONE && k->listing.tokens == 1 && k->listing.foreign == 0 &&
		     listing_find(&k->listing, wanted->name) != NULL;

	say(right ? "CHECK ok %s" : "CHECK no %s", what);
	t->fit = t->fit && right;
}

static void token_steps(struct trial *t, const struct owner_token *token)
{
	struct remote_dir *r = &t->k->remote_dir;
	struct owner_token next = *token;
	const char *old_path, *new_path;

	next.beat++;
	token_name(&next);
	old_path = dirlock_path(t->k, token->name);
	new_path = dirlock_path(t->k, next.name);
	trial_expect(t, "a directory inside it can be made", r->ops->mkdir(r, old_path), REPLY_DONE);
	trial_lists(t, "a listing shows it", token);
	trial_expect(t, "a directory that is not empty stays", r->ops->rmdir(r, t->k->lock), REPLY_REFUSED);
	trial_expect(t, "a directory can be renamed", r->ops->rename(r, old_path, new_path), REPLY_DONE);
	trial_expect(t, "its old name is gone", r->ops->rmdir(r, old_path), REPLY_REFUSED);
	trial_lists(t, "a listing shows the new name", &next);
	trial_expect(
	    t, "what is not there cannot be renamed", r->ops->rename(r, old_path, new_path), REPLY_REFUSED);
	trial_expect(t, "a directory can be removed", r->ops->rmdir(r, new_path), REPLY_DONE);
}

int dirlock_check(struct dirlock *k)
{
	struct trial t = {k, true};
	struct remote_dir *r = &k->remote_dir;
	struct owner_token token;
	int64_t seconds;

	token_make(&token, 'x', 0, k->ttl, k->options->pid);
	/* Beside the lock, not in its place: it may be in use. */
	snprintf(k->lock, sizeof k->lock, "%s", dirlock_beside(k, "sl-check-", token.nonce));
	say("CHECK ok login");
	if (trial_expect(&t, "a directory can be made", r->ops->mkdir(r, k->lock), REPLY_DONE)) {
		trial_expect(&t, "it cannot be made twice", r->ops->mkdir(r, k->lock), REPLY_REFUSED);
		trial_expect(&t, "it can be entered", r->ops->enter(r, k->lock), REPLY_DONE);
		token_steps(&t, &token);
		if (r->ops->modified(r, k->lock, &seconds) != REPLY_DONE)
			say("CHECK note the server tells no times (MLST): --no-wait cannot see "
			    "that a holder is dead");
		trial_expect(&t, "and it can be removed", r->ops->rmdir(r, k->lock), REPLY_DONE);
		trial_expect(&t, "and is gone then", r->ops->enter(r, k->lock), REPLY_REFUSED);
	}
	if (strcmp(k->options->url.scheme, "ftp") == 0)
		say("CHECK note the password goes over the network in clear text; ftpes:// would hide it");
	return t.fit ? EXIT_RELEASED : EXIT_UNAVAILABLE;
}
