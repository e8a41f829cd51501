#include <config.h>

#include "locksmith/common/login.h"

#include "locksmith/common/netrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file's text, to be freed; NULL if there is none (that is no error) or *why is filled. */
static char *read_netrc(struct why *why)
{
	static const size_t most = 1 << 16;
	const char *name = getenv("NETRC"), *home = getenv("HOME");
	char path[512], *text;
	struct stat st;
	FILE *file;

	if (name == NULL || name[0] == '\0') {
		snprintf(path, sizeof path, "%s/.netrc", home != NULL ? home : "");
		name = path;
	}
	file = fopen(name, "re");
	if (file == NULL) {
		if (errno != ENOENT && errno != ENOTDIR)
			why_set(
			    why, EXIT_NOT_PERMITTED, "cannot read %s: %s", name, strerror(errno));
		return NULL;
	}
	if (fstat(fileno(file), &st) == 0 && (st.st_mode & 077) != 0)
		fprintf(stderr, "semlock: %s: others can read it: chmod 600 it\n", name);
	text = malloc(most + 1);
	if (text != NULL)
		text[fread(text, 1, most, file)] = '\0';
	fclose(file);
	return text;
}

static int from_netrc(const struct url *url, struct login *login, struct why *why)
{
	struct netrc_entry entry;
	char host[264], *text;

	why->status = 0;
	text = read_netrc(why);
	if (text == NULL)
		return why->status == 0 ? 0 : -1;
	url_hostname(url->host[0], host, sizeof host);
	if (netrc_find(text, host, login->user, &entry) == 0) {
		snprintf(login->user, sizeof login->user, "%s", entry.login);
		snprintf(login->password, sizeof login->password, "%s", entry.password);
		login->has_password = true;
	}
	explicit_bzero(text, strlen(text));
	free(text);
	return 0;
}

int login_find(const struct url *url, struct login *login, struct why *why)
{
	const char *user = getenv("SEMLOCK_USER"), *password = getenv("SEMLOCK_PASSWORD");

	*login = (struct login){.has_password = false};
	if (url->user[0] != '\0')
		user = url->user;
	if (user != NULL && strlen(user) >= sizeof login->user)
		return why_set(why, EXIT_USAGE, "the user name is too long");
	if (user != NULL)
		strcpy(login->user, user);
	if (password == NULL)
		return from_netrc(url, login, why);
	if (strlen(password) >= sizeof login->password)
		return why_set(why, EXIT_USAGE, "SEMLOCK_PASSWORD is too long");
	strcpy(login->password, password);
	login->has_password = true;
	return 0;
}
