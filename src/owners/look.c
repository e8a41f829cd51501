#include <config.h>

#include "methods/server/server.h"
#include "owners/look.h"
#include "owners/owners_look.h"
#include "owners/probe.h"
#include "owners/sources.h"
#include "owners/verify.h"

/* A file with a bare PID in it, whose holder has the file under flock(2), is a lock of -m link. */
static bool is_link(const struct owners *found, const char *name)
{
	struct lock lock = {.method = method_named("link"), .name = name};
	struct probe probe;
	struct error ignored;
	bool pid_only = found->holders == 1 && probe_open(&probe, &lock, &ignored) == 0 &&
		       probe.info.there && probe.info.record.kind == RECORD_PID &&
		       verify_names(&found->list[0], &probe.info.record);

	if (found->holders == 1)
		probe_close(&probe);
	return pid_only;
}

/* Without -m, kernel locks of all kinds count, unless the lock's record tells its method. */
static int look_at_any(struct owners *found, struct lock *lock, struct error *error)
{
	const struct method *recorded = probe_method(lock->name);

	if (recorded == NULL) {
		if (owners_look(found, lock, KIND_FLOCK | KIND_OFD | KIND_POSIX, error) != 0)
			return -1;
		if (!is_link(found, lock->name))
			return 0;
		owners_forget(found);
		recorded = method_named("link");
	}
	lock->method = recorded;
	return owners_look(found, lock, 0, error);
}

int look_by_name(struct owners *found, struct lock *lock, bool method_named, struct error *error)
{
	if (server_method(lock->name) != NULL)
		lock->method = server_method(lock->name);
	if ((lock->method->can & ON_SERVER) != 0)
		return server_owners_ask(found, lock, error);
	if (!method_named)
		return look_at_any(found, lock, error);
	return owners_look(found, lock, owners_kinds(lock), error);
}
