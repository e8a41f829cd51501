/* least LOCK PROGRAM [ARG...] - flock(2) and run PROGRAM, by the fewest system calls there can be:
 * no order, no signals, no look at the name.  How much of what a tool costs is its own.
 * Without arguments it is the command that costs the least. */
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
