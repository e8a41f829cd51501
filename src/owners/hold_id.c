/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "methods/server/scheme.h"
#include "owners/hold_id.h"
#include "sys/files.h"
#include "sys/listeners.h"
#include "sys/process.h"

#define SOCKET_PREFIX "semlock-hold-"

enum { RANDOM_DIGITS = 8 };

/* getrandom(2) is of Linux 3.17. */
static bool random_number(uint32_t *number)
{
	ssize_t got = -1;
	int fd;

#ifdef SYS_getrandom
	got = syscall(SYS_getrandom, number, sizeof *number, 0);
#endif
	if (got == (ssize_t)sizeof *number)
		return true;
	fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, number, sizeof *number);
	close(fd);
	return got == (ssize_t)sizeof *number;
}

int hold_id_make(char text[HOLD_ID_SIZE], struct error *error)
{
	struct procfs_stat self;
	uint32_t number;

	if (!random_number(&number))
		return error_set(error, ERROR_SYSTEM, "cannot read random bytes");
	if (!process_numbers_ours() || !process_stat(getpid(), &self))
		self.started = 0;
	snprintf(text, HOLD_ID_SIZE, "%ld-%llu-%08lx", (long)getpid(), self.started,
	    (unsigned long)number);
	return 0;
}

bool hold_id_parse(const char *text, struct hold_id *id)
{
	char *end;

	if (!isdigit((unsigned char)*text) || strlen(text) >= HOLD_ID_SIZE)
		return false;
	id->pid = (pid_t)strtol(text, &end, 10);
	if (id->pid <= 0 || end[0] != '-' || !isdigit((unsigned char)end[1]))
		return false;
	id->started = strtoull(end + 1, &end, 10);
	return end[0] == '-' && strlen(end + 1) == RANDOM_DIGITS &&
	       strspn(end + 1, "0123456789abcdef") == RANDOM_DIGITS;
}

socklen_t hold_id_address(const char *text, struct sockaddr_un *address)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length =
	    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, SOCKET_PREFIX "%s", text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

const char *hold_id_of_socket(const char *name, struct hold_id *id)
{
	const char *text = name + strlen(SOCKET_PREFIX);

	if (strncmp(name, SOCKET_PREFIX, strlen(SOCKET_PREFIX)) != 0 || !hold_id_parse(text, id))
		return NULL;
	return text;
}

struct id_search {
	pid_t pid;
	char *text; /* "": not found yet */
};

static bool see_socket(const char *name, void *context)
{
	const struct id_search *search = context;
	struct hold_id id;
	const char *text = hold_id_of_socket(name, &id);

	if (text == NULL || id.pid != search->pid)
		return true;
	strcpy(search->text, text);
	return false;
}

static bool find_socket(pid_t pid, char text[HOLD_ID_SIZE])
{
	struct id_search search = {pid, text};

	text[0] = '\0';
	listeners_each(see_socket, &search);
	return text[0] != '\0';
}

bool hold_id_find(pid_t pid, char text[HOLD_ID_SIZE])
{
	struct process process, parent;

	if (!process_read(pid, &process) ||
	    memmem(process.command, process.command_length, "--de", strlen("--de")) == NULL)
		return false;
	while (!find_socket(pid, text)) {
		pid = process.parent;
		if (pid <= 1 || !process_read(pid, &parent) ||
		    parent.command_length != process.command_length ||
		    memcmp(parent.command, process.command, process.command_length) != 0)
			return false;
		process = parent;
	}
	return true;
}

int hold_lock_name(const char *name, char text[PATH_MAX + 1], struct error *error)
{
	const char *slash = strrchr(name, '/'), *base = slash == NULL ? name : slash + 1;
	char space[PATH_MAX], real[PATH_MAX];
	const char *directory;
	int length;

	if (server_method(name) != NULL) {
		length = snprintf(text, PATH_MAX + 1, "%s", name);
		return length <= PATH_MAX ? 0
		                          : error_plain(error, ERROR_USAGE, "this URL is too long");
	}
	directory = path_directory(name, space);
	if (directory == NULL || realpath(directory, real) == NULL) {
		if (errno == ERANGE) /* glibc 2.31, where getcwd(2) has said ENAMETOOLONG */
			errno = ENAMETOOLONG;
		return error_set(error, ERROR_OPEN, "cannot name its directory");
	}
	length = snprintf(text, PATH_MAX + 1, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
	if (length > PATH_MAX)
		return error_plain(error, ERROR_USAGE, "this name is too long");
	return 0;
}
