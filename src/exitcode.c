#include <config.h>

#include "exitcode.h"

int exit_status_of(enum trouble trouble)
{
	switch (trouble) {
	case TROUBLE_USAGE:
		return EXIT_USAGE;
	case TROUBLE_LOCKABLE:
		return EXIT_NOTLOCKABLE;
	case TROUBLE_OPEN:
		return EXIT_NOTOPEN;
	case TROUBLE_CREATE:
		return EXIT_CANTCREATE;
	case TROUBLE_SYSTEM:
		return EXIT_SYSTEM;
	case TROUBLE_UNAVAILABLE:
		return EXIT_UNAVAILABLE;
	case TROUBLE_LOST:
		return EXIT_LOST;
	case TROUBLE_PERMISSION:
		return EXIT_NOTPERMITTED;
	case TROUBLE_NONE:
		break;
	}
	return EXIT_INTERNAL;
}
