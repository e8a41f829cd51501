/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "methods/file/filemethods.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/table.h"

/* In the order of --help. */
static const struct method *const methods[] = {
    &method_flock,
    &method_ofd,
    &method_posix,
    &method_excl,
    &method_link,
    &method_mkdir,
    &method_rename,
    &method_symlink,
};

const struct method *method_nth(unsigned n)
{
	return n < sizeof methods / sizeof *methods ? methods[n] : NULL;
}

const struct method *method_named(const char *name)
{
	const struct method *method;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		if (strcmp(method->name, name) == 0)
			return method;
	return NULL;
}
