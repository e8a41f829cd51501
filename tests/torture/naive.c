/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "naive.h"

static void breathe(void)
{
	struct timespec moment = {0, 200000};

	nanosleep(&moment, NULL);
}

/* "die": the holder that is killed and leaves its lock. */
static int run(const char *self, const char *word)
{
	int status;
	pid_t pid;

	if (strcmp(word, "die") == 0)
		raise(SIGKILL);
	pid = fork();
	if (pid == 0) {
		execl(self, self, "inside", word, (char *)NULL);
		_exit(2);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int gone(long pid)
{
	return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static long read_pid(const char *name)
{
	char text[32] = "";
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	close(fd);
	return text[0] == '\0' ? 0 : atol(text);
}

static int unchecked(const char *lock, const char *self, const char *word)
{
	int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600), status;

	flock(fd, LOCK_EX);
	status = run(self, word);
	unlink(lock);
	close(fd);
	return status;
}

static void write_pid(int fd)
{
	dprintf(fd, "%ld\n", (long)getpid());
	close(fd);
}

/* CHECKS: a dead holder's file is removed; otherwise only a file with a PID in it is. */
static int pid_file(const char *lock, const char *self, const char *word)
{
	int fd, status;

	while ((fd = open(lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0) {
		if (gone(read_pid(lock))) {
			breathe(); /* as on a busy machine */
			unlink(lock);
		} else {
			breathe();
		}
	}
	breathe();
	write_pid(fd);
	status = run(self, word);
	unlink(lock);
	return status;
}

static long link_pid(const char *lock)
{
	char target[32] = "";

	return readlink(lock, target, sizeof target - 1) < 0 ? -1 : atol(target);
}

static int broken_symlink(const char *lock, const char *self, const char *word)
{
	char target[32];
	int status;

	snprintf(target, sizeof target, "%ld", (long)getpid());
	while (symlink(target, lock) != 0) {
		if (gone(link_pid(lock))) {
			breathe();
			unlink(lock);
		} else {
			breathe();
		}
	}
	status = run(self, word);
	unlink(lock);
	return status;
}

static int swap(const char *lock, const char *self, const char *word)
{
	char guard[64], record[80];
	int status, in = 0;

	snprintf(guard, sizeof guard, "%s.2", lock);
	snprintf(record, sizeof record, "%s.pid", lock);
	while (!in) {
		in = mkdir(lock, 0700) == 0;
		if (!in && gone(read_pid(record)) && mkdir(guard, 0700) == 0) {
			breathe();
			in = gone(read_pid(record)) && rename(guard, lock) == 0;
			if (!in)
				rmdir(guard);
		}
		if (!in)
			breathe();
	}
	write_pid(open(record, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	status = run(self, word);
	rmdir(lock);
	return status;
}

static const struct {
	const char *name;
	int (*run)(const char *, const char *, const char *);
} lockers[] = {
    {"naive-unchecked", unchecked},
    {"naive-empty", pid_file},
    {"naive-break", broken_symlink},
    {"naive-swap", swap},
};

int naive_is(const char *name)
{
	return strncmp(name, "naive-", 6) == 0;
}

int naive_run(const char *name, const char *lock, const char *self, const char *word)
{
	for (size_t i = 0; i < sizeof lockers / sizeof *lockers; i++)
		if (strcmp(lockers[i].name, name) == 0)
			return lockers[i].run(lock, self, word);
	return 2;
}
