#include <config.h>

#include "locksmith/common/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CR and LF would end a command of FTP and begin another. */
static int take_variable(const char *name, char *into, size_t size, struct failure *failure)
{
	const char *value = getenv(name);

	for (const char *p = value; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return failure_set(failure, EXIT_USAGE, "%s has a control character in it", name);
	if (value != NULL && strlen(value) >= size)
		return failure_set(failure, EXIT_USAGE, "%s is too long", name);
	snprintf(into, size, "%s", value != NULL ? value : "");
	return 0;
}

int login_find(const struct url *url, struct login *login, struct failure *failure)
{
	*login = (struct login){.has_password = getenv("SEMLOCK_PASSWORD") != NULL};
	if (take_variable("SEMLOCK_USER", login->user, sizeof login->user, failure) != 0 ||
	    take_variable("SEMLOCK_PASSWORD", login->password, sizeof login->password, failure) != 0)
		return -1;
	if (url->user[0] != '\0')
		snprintf(login->user, sizeof login->user, "%s", url->user);
	return 0;
}
