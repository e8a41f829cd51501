/* SPDX-License-Identifier: MIT */
/* probe-sweep.c - makes the directory of a test, and removes what the test leaves: the processes
 * that work in that directory, and the queues of the locks there. */
#include <config.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "probe.h"

static pid_t parent_of(pid_t pid)
{
	char path[64];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	/* a program's name may hold any byte: the fields begin behind the last ")" */
	if (fscanf(f, "%*[^)]") == 0 && fscanf(f, ") %*c %d", &parent) != 1)
		parent = 0;
	fclose(f);
	return parent;
}

static int is_ours(pid_t pid)
{
	for (pid_t p = getpid(); p > 1; p = parent_of(p))
		if (p == pid)
			return 1;
	return 0;
}

static int works_in(pid_t pid, const char *dir)
{
	char path[64], cwd[PATH_MAX];
	size_t n = strlen(dir);
	ssize_t got;

	snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
	got = readlink(path, cwd, sizeof cwd - 1);
	if (got < 0)
		return 0;
	cwd[got] = '\0';
	return strncmp(cwd, dir, n) == 0 && (cwd[n] == '\0' || cwd[n] == '/' || cwd[n] == ' ');
}

static int sweep_once(const char *dir)
{
	struct dirent *entry;
	int killed = 0;
	DIR *proc = opendir("/proc");

	if (proc == NULL)
		fail("cannot read", "/proc");
	while ((entry = readdir(proc)) != NULL) {
		pid_t pid =
		    isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
		if (pid > 1 && works_in(pid, dir) && !is_ours(pid) && kill(pid, SIGKILL) == 0)
			killed++;
	}
	closedir(proc);
	return killed;
}

static int sweep(const char *name)
{
	char dir[PATH_MAX];
	long long end = now_ms() + PATIENCE_MS;
	int killed = 0, now;

	if (realpath(name, dir) == NULL)
		fail("cannot find", name);
	/* repeat until no process is found: a process that forks may add a child behind the scan */
	while ((now = sweep_once(dir)) > 0 && now_ms() < end) {
		killed += now;
		pause_ms(1);
	}
	return killed;
}

/* Inode numbers are reused: a later test's lock must not find this queue. */
static void forget_queue(const struct stat *file)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, QUEUE_DIRECTORY "/semlock-%llx-%llx",
	    (unsigned long long)file->st_dev, (unsigned long long)file->st_ino);
	if (unlink(path) != 0 && (errno == EISDIR || errno == EPERM))
		rmdir(path);
}

/* bats cannot remove what is in a directory that is closed to its owner. */
static void tidy(const char *path, dev_t device)
{
	char below[PATH_MAX];
	struct dirent *entry;
	struct stat file;
	DIR *dir;

	if (lstat(path, &file) != 0)
		return;
	forget_queue(&file);
	if (!S_ISDIR(file.st_mode) || file.st_dev != device)
		return;
	if ((file.st_mode & 0700) != 0700)
		chmod(path, (file.st_mode & 07777) | 0700);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below)
			tidy(below, device);
	if (dir != NULL)
		closedir(dir);
}

/* sweep DIR: kills all processes whose working directory is DIR or below, save the
 * caller and its ancestors; prints how many were killed.  Then removes the queues of
 * all files in DIR, and opens the directories there to their owner. */
int cmd_sweep(int argc, char **argv)
{
	struct stat dir;

	if (argc != 2)
		misuse("sweep DIR");
	printf("%d\n", sweep(argv[1]));
	if (lstat(argv[1], &dir) != 0)
		fail("cannot look at", argv[1]);
	tidy(argv[1], dir.st_dev);
	return 0;
}

/* room SEMLOCK: makes the working directory one for a test: open to other users, with SEMLOCK by
 * both its names in bin. */
int cmd_room(int argc, char **argv)
{
	if (argc != 2)
		misuse("room SEMLOCK");
	if (chmod(".", 0755) != 0 || mkdir("bin", 0755) != 0 ||
	    symlink(argv[1], "bin/semlock") != 0 || symlink(argv[1], "bin/flock") != 0)
		fail("cannot make", "bin");
	return 0;
}

/* watchdog SECONDS DIR: sweeps DIR after SECONDS, so that a deadlock fails the test
 * instead of hanging it; makes DIR/time-is-up.  Repeats that, since the test may reach
 * another deadlock.  Ends with its parent. */
int cmd_watchdog(int argc, char **argv)
{
	char note[PATH_MAX];
	FILE *f;

	if (argc != 3)
		misuse("watchdog SECONDS DIR");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause_ms(number(argv[1]) * 1000);
	snprintf(note, sizeof note, "%s/time-is-up", argv[2]);
	f = fopen(note, "w");
	if (f != NULL)
		fclose(f);
	for (;;) {
		sweep(argv[2]);
		pause_ms(1000);
	}
}
