/* SPDX-License-Identifier: MIT */
/* least LOCK PROGRAM [ARG...] - flock(2) and run PROGRAM, by the fewest system calls: no order, no
 * signals, no check of the name.  The difference to a tool is the tool's own cost.
 * Without arguments, least is the cheapest command. */
#include <config.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = argc < 3 ? -1 : open(argv[1], O_RDONLY | O_CREAT, 0666);
	int status;
	pid_t pid;

	if (argc == 1)
		return 0;
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		return 70;
	pid = vfork();
	if (pid == 0) {
		execv(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
