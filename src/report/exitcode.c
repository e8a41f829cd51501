#include <config.h>

#include "report/exitcode.h"

int exit_status_of(enum kind kind)
{
	switch (kind) {
	case ERROR_USAGE:
		return EXIT_USAGE;
	case ERROR_LOCKABLE:
		return EXIT_NOTLOCKABLE;
	case ERROR_OPEN:
		return EXIT_NOTOPEN;
	case ERROR_CREATE:
		return EXIT_CANTCREATE;
	case ERROR_SYSTEM:
		return EXIT_SYSTEM;
	case ERROR_UNAVAILABLE:
		return EXIT_UNAVAILABLE;
	case ERROR_LOST:
		return EXIT_LOST;
	case ERROR_PERMISSION:
		return EXIT_NOTPERMITTED;
	case ERROR_NONE:
		break;
	}
	return EXIT_INTERNAL;
}
