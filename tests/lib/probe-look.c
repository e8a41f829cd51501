/* SPDX-License-Identifier: MIT */
/* probe-look.c - returns when another process has reached a certain state. */
#include <config.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"
#include "syscalls.h"

static int read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return 0;
}

static int state_is(const char *pid, const char *letters)
{
	char path[64], text[512];
	const char *state;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	if (read_text(path, text, sizeof text) != 0)
		return 0;
	state = strrchr(text, ')');
	return state != NULL && state[1] == ' ' && strchr(letters, state[2]) != NULL;
}

/* The kernel reports no process that falls asleep: poll. */
static int within_limit(int (*condition)(const char *pid, const char *what), const char *pid,
    const char *what)
{
	long long end = now_ms() + PATIENCE_MS;

	while (!condition(pid, what)) {
		int over = kill((pid_t)number(pid), 0) != 0 || state_is(pid, "ZX");
		if (over && condition(pid, what))
			return 0; /* the caller waited for the end of this process */
		if (over || now_ms() > end) {
			fprintf(stderr, "probe: process %s did not come to %s\n", pid, what);
			return 1;
		}
		pause_ms(1);
	}
	return 0;
}

/* In a build for coverage, each process locks the file of its counters when it begins. */
static int is_of_counters(pid_t pid, long fd)
{
	char path[64], name[4096];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/%d/fd/%ld", (int)pid, fd);
	length = readlink(path, name, sizeof name - 1);
	name[length > 0 ? length : 0] = '\0';
	return strstr(name, ".profraw") != NULL;
}

static int is_blocking_lock(pid_t pid, const char *line)
{
	long call, fd;
	unsigned long how;

	if (sscanf(line, "%ld %li %lx", &call, &fd, &how) != 3)
		return 0;
	if (call == SYS_flock)
		/* not LOCK_NB, which sleeps, too, while another process reads /proc/locks */
		return (how & LOCK_NB) == 0;
	if (is_poll(call) && how == 2)
		return 1; /* waits for the end of a foreign holder: src/methods/file/takeover.c */
	return is_fcntl(call) && (how == F_SETLKW || how == F_OFD_SETLKW) &&
	       !is_of_counters(pid, fd);
}

/* While another process reads /proc/locks, a blocking call may sleep before the kernel has queued
 * it: then no list shows the waiter. */
static int has_queued(pid_t pid, const char *thread)
{
	char path[300], where[300];

	snprintf(path, sizeof path, "/proc/%d/task/%.20s/wchan", (int)pid, thread);
	return read_text(path, where, sizeof where) != 0 || strstr(where, "rwsem") == NULL;
}

static int one_sleeps_in_lock(pid_t pid)
{
	char path[300], line[300];
	struct dirent *entry;
	int found = 0;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks != NULL && !found && (entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) > 20)
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/syscall", (int)pid, entry->d_name);
		found = read_text(path, line, sizeof line) == 0 && is_blocking_lock(pid, line) &&
		        has_queued(pid, entry->d_name);
	}
	if (tasks != NULL)
		closedir(tasks);
	return found;
}

/* With -o and -m posix the child of the started semlock waits: src/run/subreaper.h. */
int sleeps_in_lock(pid_t pid)
{
	char path[300], children[300];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	return one_sleeps_in_lock(pid) ||
	       (read_text(path, children, sizeof children) == 0 && atoi(children) > 0 &&
		   one_sleeps_in_lock((pid_t)atoi(children)));
}

static int is_blocked(const char *pid, const char *what)
{
	(void)what;
	return sleeps_in_lock((pid_t)number(pid));
}

/* blocked PID: returns 0 when a thread of PID sleeps in a lock call. */
int cmd_blocked(int argc, char **argv)
{
	if (argc != 2)
		misuse("blocked PID");
	return within_limit(is_blocked, argv[1], "a blocking lock call");
}

/* state PID LETTERS: returns 0 when PID is in one of these states (T stopped, S asleep). */
int cmd_state(int argc, char **argv)
{
	if (argc != 3)
		misuse("state PID LETTERS");
	return within_limit(state_is, argv[1], argv[2]);
}

/* gone PID [SECONDS]: returns 0 when PID has ended, within SECONDS (PATIENCE_MS). */
int cmd_gone(int argc, char **argv)
{
	struct pollfd end = {.events = POLLIN};

	if (argc != 2 && argc != 3)
		misuse("gone PID [SECONDS]");
	end.fd = (int)syscall(SYS_pidfd_open, (pid_t)number(argv[1]), 0);
	if (end.fd < 0)
		return errno == ESRCH ? 0 : 71;
	if (poll(&end, 1, argc == 3 ? 1000 * (int)number(argv[2]) : PATIENCE_MS) == 1)
		return 0;
	fprintf(stderr, "probe: process %s lives on\n", argv[1]);
	return 1;
}

/* Reads FILE, which may grow meanwhile, into TEXT, a string of its own. */
static char *read_file(int fd, size_t size)
{
	char *text = malloc(size + 1);
	size_t got = 0;
	ssize_t n;

	if (text == NULL)
		fail("malloc", "");
	while (got < size && (n = pread(fd, text + got, size - got, (off_t)got)) > 0)
		got += (size_t)n;
	for (size_t i = 0; i < got; i++)
		if (text[i] == '\0')
			text[i] = '\1';
	text[got] = '\0';
	return text;
}

static bool has_line(const char *name, const regex_t *pattern)
{
	struct stat now;
	char *text;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool found = false;

	if (fd >= 0 && fstat(fd, &now) == 0) {
		text = read_file(fd, (size_t)now.st_size);
		found = regexec(pattern, text, 0, NULL, 0) == 0;
		free(text);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* line FILE PATTERN SECONDS: returns 0 when a line of FILE matches PATTERN, as grep(1) has it, and
 * 1 after SECONDS.  FILE may not be there yet. */
int cmd_line(int argc, char **argv)
{
	regex_t pattern;
	long long end;
	long pause = 1;
	bool found;

	if (argc != 4)
		misuse("line FILE PATTERN SECONDS");
	if (regcomp(&pattern, argv[2], REG_NOSUB | REG_NEWLINE) != 0)
		misuse("line FILE PATTERN SECONDS");
	end = now_ms() + 1000 * number(argv[3]);
	while (!(found = has_line(argv[1], &pattern)) && now_ms() <= end) {
		pause_ms(pause);
		pause += pause < 20;
	}
	regfree(&pattern);
	return found ? 0 : 1;
}
