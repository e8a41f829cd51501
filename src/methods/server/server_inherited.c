/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/server/locksmith.h"
#include "methods/server/server_inherited.h"
#include "sys/files.h"
#include "sys/process.h"

/* Return a descriptor of this process that writes to the pipe INPUT or, if INPUT is NULL, to any
 * marked pipe; -1: none.  Skip read ends: with --hold, semlock reads from a pipe of its caller. */
static int inherited_end(const struct stat *input)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat file;
	int found = -1;

	while (fds != NULL && found < 0 && (entry = readdir(fds)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd <= STDERR_FILENO || fstat(fd, &file) != 0 || !S_ISFIFO(file.st_mode) ||
		    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
			continue;
		if (input == NULL && locksmith_marked(fd))
			found = fd;
		if (input != NULL && same_file(identity_of(&file), identity_of(input)))
			found = fd;
	}
	if (fds != NULL)
		closedir(fds);
	return found;
}

struct helper_search {
	const char *url;
	enum inherited *mode;
	int fd;
};

static bool see_process(pid_t pid, void *context)
{
	struct helper_search *search = context;
	struct process process;
	const char *word, *last = "";
	struct stat input;
	char path[40];
	int fd;

	/* Compare the pipe before reading the process's command line: to read that of every process
	 * would cost more than the rest of semlock's start. */
	snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)pid);
	if (stat(path, &input) != 0 || !S_ISFIFO(input.st_mode) ||
	    (fd = inherited_end(&input)) < 0 || !process_read(pid, &process))
		return true;
	*search->mode = INHERITED_EXCLUSIVE;
	for (size_t i = 0; i < process.command_length; i += strlen(word) + 1) {
		last = word = process.command + i;
		if (strcmp(word, "--mode=shared") == 0)
			*search->mode = INHERITED_SHARED;
		else if (strncmp(word, "--slots=", strlen("--slots=")) == 0)
			*search->mode = INHERITED_SLOT;
	}
	if (strcmp(last, search->url) == 0)
		search->fd = fd;
	return search->fd < 0;
}

int server_inherited(const char *url, enum inherited *mode)
{
	struct helper_search search = {url, mode, -1};

	/* Most processes have inherited no pipe with a helper's mark.  For them, do not search all
	 * processes. */
	if (inherited_end(NULL) >= 0)
		process_each(see_process, &search);
	return search.fd;
}
