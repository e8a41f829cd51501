#include <config.h>

#include "view.h"

int view_open(struct view *view, const struct lock *lock, struct why *why)
{
	*view = (struct view){.sight = {.object = -1}};
	view->lock = (struct lock){
	    .method = lock->method,
	    .name = lock->name,
	    .bearer = &view->nobody,
	    .fd = -1,
	    .slot = -1,
	};
	if (view->lock.method->open(&view->lock, why) != 0)
		return -1;
	return view->lock.method->peek(&view->lock, &view->sight, why);
}

void view_close(struct view *view)
{
	sight_forget(&view->sight);
	view->lock.method->release(&view->lock);
}

static bool says_so(const struct method *method, const char *name)
{
	struct lock lock = {.method = method, .name = name};
	struct view view;
	struct why ignored;
	bool full = view_open(&view, &lock, &ignored) == 0 && view.sight.there &&
		    view.sight.record.kind == RECORD_FULL;

	view_close(&view);
	return full;
}

const struct method *view_method(const char *name)
{
	const struct method *method;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		if (method->peek != NULL && says_so(method, name))
			return method;
	return NULL;
}
