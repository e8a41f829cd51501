/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdbool.h>
#include <string.h>

#include "hold/sandbox.h"

/* The errnos with which sandboxes refuse a call.  EPERM: seccomp filters, and the scopes of
 * Landlock.  EACCES: AppArmor and SELinux.  EAFNOSUPPORT: systemd's RestrictAddressFamilies=.
 * ENOSYS: gVisor, and some filters. */
static bool is_of_sandbox(int errnum)
{
	return errnum == EPERM || errnum == EACCES || errnum == EAFNOSUPPORT || errnum == ENOSYS;
}

int sandbox_error(struct error *error, const char *what, const char *instead)
{
	const int errnum = errno;

	if (!is_of_sandbox(errnum))
		return error_set(error, ERROR_SYSTEM, "%s", what);
	return error_plain(error, ERROR_UNAVAILABLE,
	    "%s: %s: a sandbox forbids it (seccomp, Landlock, AppArmor); instead, %s", what,
	    strerror(errnum), instead);
}
