/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <getopt.h>

#include "cli/options.h"
#include "methods/kernel/kernel_methods.h"

/* --fcntl, --start and --length do not override -m. */
static void read_lock_option(struct lock_options *lock, int option)
{
	switch (option) {
	case 'f':
		lock->more[lock->nmore++] = optarg;
		break;
	case 'm':
		lock->method = method_named(optarg);
		lock->method_named = true;
		break;
	case OPT_FCNTL:
	case OPT_START:
	case OPT_LENGTH:
		if (!lock->method_named)
			lock->method = method_named("ofd");
		lock->method_named = true;
		break;
	case OPT_NAME:
		lock->name = optarg;
		break;
	case OPT_FD:
		lock->fd = optarg;
		break;
	}
}

bool lock_options_read(struct lock_options *lock, int argc, char **argv)
{
	int option;

	*lock = (struct lock_options){.method = &method_flock};
	optind = 0; /* getopt(3) begins again */
	while ((option = options_next(argc, argv)) >= 0 && option != 'c') {
		if (option == OPT_WHO || option == '?' || option == ':')
			return false;
		read_lock_option(lock, option);
	}
	lock->operand = argv[optind];
	return lock->method != NULL;
}
