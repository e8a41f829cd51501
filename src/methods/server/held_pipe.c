/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/server/held_pipe.h"
#include "sys/open_fds.h"
#include "sys/process.h"

struct helper_search {
	const char *url;
	struct held_pipe *pipe;
	bool found;
};

/* Beside its standard descriptors, most processes have none: only for those that do, all processes are looked at. */
static bool has_pipe(void)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat file;
	bool found = false;

	while (fds != NULL && !found && (entry = readdir(fds)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		found = fd > STDERR_FILENO && fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode);
	}
	if (fds != NULL)
		closedir(fds);
	return found;
}

/* The descriptor of this process that writes to FILE, which is a helper's input; -1: none.  With --hold, semlock reads
 * from a pipe of its caller's. */
static int own_end(const struct stat *file)
{
	struct identity pipe = {file->st_dev, file->st_ino};
	struct open_fds open_fds = {.files = &pipe, .nfiles = 1};
	int fd = -1;

	open_fds_of(&open_fds, getpid());
	for (size_t i = 0; i < open_fds.count; i++)
		if ((fcntl(open_fds.list[i].fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
			fd = open_fds.list[i].fd;
	open_fds_forget(&open_fds);
	return fd;
}

static bool is_helper(pid_t pid, void *context)
{
	struct helper_search *search = context;
	struct process process;
	const char *word, *last = "";
	struct stat input;
	char path[40];

	/* The pipe first: to read of each process who it is would cost a start more than all the rest. */
	snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)pid);
	if (stat(path, &input) != 0 || !S_ISFIFO(input.st_mode) || (search->pipe->fd = own_end(&input)) < 0 ||
	    !process_read(pid, &process))
		return true;
	search->pipe->mode = PIPE_OF_EXCLUSIVE;
	for (size_t i = 0; i < process.command_length; i += strlen(word) + 1) {
		last = word = process.command + i;
		if (strcmp(word, "--mode=shared") == 0)
			search->pipe->mode = PIPE_OF_SHARED;
		else if (strncmp(word, "--slots=", strlen("--slots=")) == 0)
			search->pipe->mode = PIPE_OF_SLOT;
	}
	search->found = strcmp(last, search->url) == 0;
	return !search->found;
}

bool held_pipe_inherited(const char *url, struct held_pipe *pipe)
{
	struct helper_search search = {url, pipe, false};

	if (has_pipe())
		process_each(is_helper, &search);
	return search.found;
}
