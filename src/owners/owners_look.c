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

int owners_look(struct owners *found, const struct lock *lock, struct search_terms *terms,
    struct error *error)
{
	enum { MOST_TRIES = 4 };
	struct search search = {terms, allowance_begins(terms->budget, terms->deadline)};
	int seen = 0;

	*found = (struct owners){0};
	for (int tries = 0; tries < MOST_TRIES && seen == 0; tries++) {
		if (tries > 0 && allowance_spent(&search.limit))
			break;
		if (tries > 0)
			open_fds_drop_walk();
		owners_forget(found);
		seen = source_of(lock)->add(found, lock, &search, error);
	}
	if (seen >= 0 && found->seen == SEEN_FAILED)
		seen = error_plain(error, ERROR_SYSTEM, "cannot list its holders: no memory");
	return seen < 0 ? -1 : 0;
}

/* No process that is seen here holds the kernel lock: one outside of this PID namespace does. */
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

/* Without -m, kernel locks of all kinds count, unless the lock's record tells its method. */
int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool this_method,
    struct search_terms *terms, struct error *error)
{
	const struct lock lock = LOCK_OF(spec);
	const struct method *recorded;

	*found = (struct owners){0};
	if (server_method(spec->name) != NULL)
		spec->method = server_method(spec->name);
	if (spec->method->family == ON_SERVER) {
		open_fds_drop_walk(); /* its answer may take long */
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

bool owners_verify(const struct lock *lock, pid_t pid)
{
	return source_of(lock)->verify(lock, pid);
}

enum nesting nesting_inherited(const struct lock *lock, int *fd)
{
	return source_of(lock)->inherited(lock, fd);
}
