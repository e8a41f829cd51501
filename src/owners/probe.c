#include <config.h>

#include "owners/probe.h"

int probe_open(struct probe *probe, const struct lock *lock, struct error *error)
{
	*probe = (struct probe){.info = {.object = -1}};
	probe->lock = (struct lock){
	    .method = lock->method,
	    .name = lock->name,
	    .child = &probe->no_child,
	    .fd = -1,
	    .slot = -1,
	};
	if (probe->lock.method->open(&probe->lock, error) != 0)
		return -1;
	return probe->lock.method->inspect(&probe->lock, &probe->info, error);
}

void probe_close(struct probe *probe)
{
	lock_info_forget(&probe->info);
	probe->lock.method->release(&probe->lock);
}

static bool says_so(const struct method *method, const char *name)
{
	struct lock lock = {.method = method, .name = name};
	struct probe probe;
	struct error ignored;
	bool full = probe_open(&probe, &lock, &ignored) == 0 && probe.info.there &&
		    probe.info.record.kind == RECORD_FULL;

	probe_close(&probe);
	return full;
}

const struct method *probe_method(const char *name)
{
	const struct method *method;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		if (method->inspect != NULL && says_so(method, name))
			return method;
	return NULL;
}
