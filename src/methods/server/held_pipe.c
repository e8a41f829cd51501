#include <config.h>

#include <string.h>
#include <unistd.h>

#include "methods/server/held_pipe.h"
#include "sys/process.h"

struct helper_search {
	const char *url;
	const struct identity *pipe;
	pid_t found;
};

/* Does process PID have PIPE open, as descriptor FD if FD is not -1?  -1: /proc does not show it. */
static int has_open(pid_t pid, const struct identity *pipe, int fd)
{
	struct open_fds open_fds = {.files = pipe, .nfiles = 1};
	int has;

	open_fds_of(&open_fds, pid);
	has = open_fds.blind ? -1 : 0;
	for (size_t i = 0; i < open_fds.count; i++)
		if (fd < 0 || open_fds.list[i].fd == fd)
			has = 1;
	open_fds_forget(&open_fds);
	return has;
}

/* A helper gets the URL as its last argument. */
static const char *last_argument(const struct process *process)
{
	size_t at = process->command_length;

	if (at < 2 || process->command[at - 1] != '\0')
		return "";
	for (at--; at > 0 && process->command[at - 1] != '\0'; at--)
		;
	return process->command + at;
}

/* The outermost ancestor that has PIPE open: semlock, if it lives. */
static pid_t outermost_holder(const struct identity *pipe)
{
	struct procfs_stat stat;
	pid_t found = 0;

	for (pid_t pid = getpid(); pid > 0; pid = process_stat(pid, &stat) ? stat.parent : 0)
		if (has_open(pid, pipe, -1) > 0)
			found = pid;
	return found;
}

static bool is_helper(pid_t pid, void *context)
{
	struct helper_search *search = context;
	struct process process;
	int reads;

	if (!process_read(pid, &process) || strcmp(last_argument(&process), search->url) != 0)
		return true;
	reads = has_open(pid, search->pipe, STDIN_FILENO);
	if (reads > 0)
		search->found = outermost_holder(search->pipe);
	else if (reads < 0 && process_descends(getpid(), process.parent))
		search->found = process.parent;
	return search->found == 0;
}

pid_t held_pipe_ancestor(const char *url, const struct identity *pipe)
{
	struct helper_search search = {url, pipe, 0};

	process_each(is_helper, &search);
	return search.found;
}
