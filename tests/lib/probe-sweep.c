/* probe-sweep.c - ends what a test has left running: all that works in the test's own directory. */
#include <config.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
	/* the name may hold anything: the fields begin behind the last ")" */
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
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
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
	/* until nobody is found: a forking process may get a child past one look */
	while ((now = sweep_once(dir)) > 0 && now_ms() < end) {
		killed += now;
		pause_ms(1);
	}
	return killed;
}

/* sweep DIR: kills all processes whose working directory is DIR or below, save the
 * caller and its ancestors; prints how many kills that took. */
int cmd_sweep(int argc, char **argv)
{
	if (argc != 2)
		misuse("sweep DIR");
	printf("%d\n", sweep(argv[1]));
	return 0;
}

/* watchdog SECONDS DIR: sweeps DIR after SECONDS, so that a deadlock is a failure
 * and not a hung test; notes it in DIR/time-is-up.  Then again and again: a test that goes on
 * may come to the next one.  Ends with its parent. */
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
