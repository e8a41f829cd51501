/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

#include "methods/server/scheme.h"
#include "methods/table.h"
#include "owners/sources.h"

static const struct source *source_of(const struct lock *lock)
{
	switch (lock->spec->method->family) {
	case OF_KERNEL:
		return &kernel_source;
	case OF_FILES:
		return &record_source;
	case ON_SERVER:
		break;
	}
	return &server_source;
}

/* Must the search be repeated, now that LOOK is its result? */
static bool has_missed(enum searched look, struct search *search)
{
	enum { MOST_TRIES = 4 };

	if (look != SEARCHED_MISSED)
		return false;
	fd_walk_drop(search->terms->walk);
	return ++search->terms->progress.tries < MOST_TRIES && !allowance_spent(&search->limit);
}

static enum searched look_once(struct owners *found, const struct lock *lock, struct search *search,
    struct error *error)
{
	enum searched look = SEARCHED_PIECE;

	*found = (struct owners){0};
	if (!search->in_pieces || fd_walk_go_on(search->terms->walk))
		look = source_of(lock)->add(found, lock, search, error);
	if (look < SEARCHED_PIECE && found->seen == SEEN_FAILED) {
		error_plain(error, ERROR_SYSTEM, "cannot list its holders: out of memory");
		look = SEARCHED_FAILED;
	}
	return look;
}

/* Does HOLDER exclude all other holders of LOCK?  A shared lock, a slot, or a part of the bytes
 * does not exclude them.  False for a holder whose process was not seen. */
static bool is_only_holder(const struct owner *holder, const struct lock *lock)
{
	const struct bytes bytes = bytes_of(lock);
	const bool has_all = !lock_can(lock, CAN_RANGE) ||
	                     (holder->first <= bytes.first && holder->last >= bytes.last);

	return holder->nmembers > 0 && holder->process.pid > 0 && holder->verdict == ALIVE &&
	       holder->mode == MODE_EXCLUSIVE && has_all;
}

/* Look only into the processes of TERMS->known.  If one of them still excludes all other holders,
 * FOUND gets it, and this returns true. */
static bool look_at_known(struct owners *found, const struct lock *lock,
    const struct search_terms *terms)
{
	struct search_terms these = {.kinds = terms->kinds, .list_use = LIST_NEVER};
	struct search search = {.terms = &these,
	    .limit = allowance_begins(terms->budget, terms->deadline),
	    .known = terms->known};
	struct error ignored;

	if (terms->known == NULL || terms->known->count == 0)
		return false;
	if (look_once(found, lock, &search, &ignored) == SEARCHED_WHOLE && found->holders == 1 &&
	    is_only_holder(&found->list[0], lock))
		return true;
	owners_forget(found);
	return false;
}

int owners_look(struct owners *found, const struct lock *lock, struct search_terms *terms,
    struct error *error)
{
	const bool in_pieces = terms->walk != NULL && terms->walk->piece > 0;
	struct search search = {.terms = terms,
	    .limit = allowance_begins(terms->budget, terms->deadline),
	    .in_pieces = in_pieces};
	enum searched look;
	bool missed;

	if (look_at_known(found, lock, terms))
		return 0;
	if (terms->progress.began == 0) {
		terms->progress.began = clock_now();
		if (in_pieces)
			fd_walk_drop(terms->walk);
	}
	do {
		look = look_once(found, lock, &search, error);
		missed = has_missed(look, &search);
		if (missed || look == SEARCHED_PIECE)
			owners_forget(found);
	} while (missed && !in_pieces);
	if (missed || look == SEARCHED_PIECE)
		return 1;
	terms->progress = (struct look_progress){0};
	return look == SEARCHED_FAILED ? -1 : 0;
}

/* No process seen here holds the kernel lock, but one outside this PID namespace does: add it. */
static void add_outside(struct owners *found, const struct method *method)
{
	struct owner *owner = owners_add(found), outside;

	if (owner == NULL)
		return;
	owner->method = method->name;
	owner->doubt = DOUBT_NAMESPACE;
	outside = *owner;
	/* holders come first */
	memmove(found->list + 1, found->list, (found->count - 1) * sizeof *found->list);
	found->list[0] = outside;
	found->holders++;
}

/* Without -m, kernel locks of all kinds count, unless a record shows which method made the lock. */
int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool this_method,
    struct search_terms *terms, struct error *error)
{
	const struct lock lock = LOCK_OF(spec);
	const struct method *recorded;

	*found = (struct owners){0};
	if (server_method(spec->name) != NULL)
		spec->method = server_method(spec->name);
	if (spec->method->family == ON_SERVER) {
		fd_walk_drop(terms->walk); /* the server may be slow: the walk would be too old */
		return server_owners_ask(found, &lock, error);
	}
	terms->kinds = this_method ? owners_kinds(&lock) : KIND_FLOCK | KIND_OFD | KIND_POSIX;
	recorded = this_method ? NULL : record_method(spec->name);
	if (recorded == NULL && owners_look(found, &lock, terms, error) != 0)
		return -1;
	if (!this_method && found->holders == 1 && record_is_link(spec->name, &found->list[0]))
		recorded = method_named("link");
	if (recorded != NULL) {
		owners_forget(found);
		spec->method = recorded;
		if (owners_look(found, &lock, terms, error) != 0)
			return -1;
	}
	if (spec->method->family == OF_KERNEL && !owners_held(found) && spec->name != NULL &&
	    kernel_owner_outside(spec->name, terms->kinds))
		add_outside(found, spec->method);
	return 0;
}

bool owners_verify(const struct lock *lock, pid_t pid, struct fd_walk *walk)
{
	return source_of(lock)->verify(lock, pid, walk);
}

enum nesting nesting_inherited(const struct lock *lock, int *fd)
{
	return source_of(lock)->inherited(lock, fd);
}
