/* SPDX-License-Identifier: MIT */
/* Processes and clocks. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "../lib/syscalls.h"

extern char **environ;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double children_cpu(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static posix_spawn_file_actions_t *silence(void)
{
	static posix_spawn_file_actions_t actions;
	static bool made;

	if (!made) {
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	}
	made = true;
	return &actions;
}

pid_t start(const char *const *words)
{
	union {
		const char *words[MOST_WORDS + 1];
		char *argv[MOST_WORDS + 1];
	} command = {{NULL}};
	pid_t pid;

	for (int i = 0; i < MOST_WORDS && words[i] != NULL && strcmp(words[i], ";") != 0; i++)
		command.words[i] = words[i];
	errno = posix_spawnp(&pid, command.words[0], silence(), NULL, command.argv, environ);
	return errno == 0 ? pid : -1;
}

bool run(const struct entrant *entrant)
{
	const char *const *words = entrant->words;
	bool ok = true;
	int status;
	pid_t pid;

	while (ok) {
		pid = start(words);
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			return false;
		ok = WIFEXITED(status) &&
		     (entrant->status < 0 ? WEXITSTATUS(status) != 0
					  : WEXITSTATUS(status) == entrant->status);
		while (*words != NULL && strcmp(*words, ";") != 0)
			words++;
		if (*words == NULL)
			break;
		words++;
	}
	return ok;
}

double one_run(const struct entrant *entrant, int unused)
{
	double began = now();

	(void)unused;
	if (!run(entrant)) {
		fprintf(stderr, "bench: %s: an unexpected status\n", entrant->name);
		exit(70);
	}
	return now() - began;
}

const char *output_of(const char *command)
{
	static char text[65536];
	FILE *pipe = popen(command, "r");
	size_t used = pipe == NULL ? 0 : fread(text, 1, sizeof text - 1, pipe);

	if (pipe != NULL)
		pclose(pipe);
	text[used] = '\0';
	return text;
}

int hold(void)
{
	int fd = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || flock(fd, LOCK_EX) != 0) {
		perror("bench: " LOCK);
		exit(70);
	}
	fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
	return fd;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

void until_asleep(pid_t pid)
{
	static const struct timespec a_moment = {0, 50000};
	char path[64], text[32];
	ssize_t got;
	long call;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
	do {
		nanosleep(&a_moment, NULL);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
		if (fd >= 0)
			close(fd);
		text[got > 0 ? got : 0] = '\0';
		call = text[0] >= '0' && text[0] <= '9' ? strtol(text, NULL, 10) : -1;
	} while (!is_fcntl(call) && call != SYS_flock && !is_sleep(call) && !is_poll(call) &&
		 !has_ended(pid));
}
