/* SPDX-License-Identifier: MIT */
/* As root, every second contender is user OTHER_USER.  The hostile process may lock any byte of the
 * lock's queue, and nothing else. */
#include <config.h>

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

enum { OTHER_USER = 65534 };

static bool two;

static void become_other(void)
{
	if (setgroups(0, NULL) != 0 || setresgid(OTHER_USER, OTHER_USER, OTHER_USER) != 0 ||
	    setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
		_exit(2);
}

/* The other user must reach the build and the temporary directory. */
static bool is_reached(const char *semlock)
{
	char directory[PATH_MAX];

	return getcwd(directory, sizeof directory) != NULL &&
	       access(directory, R_OK | W_OK | X_OK) == 0 && access(self, X_OK) == 0 &&
	       access(semlock, X_OK) == 0;
}

void users_begin(const char *semlock)
{
	int status = 1;
	pid_t pid;

	umask(0);
	if (geteuid() != 0 || chmod(".", 0777) != 0)
		return;
	if (access("lock", F_OK) == 0 && chmod("lock", 0666) != 0) /* a token */
		fatal("lock");
	pid = fork();
	if (pid == 0) {
		become_other();
		_exit(is_reached(semlock) ? 0 : 1);
	}
	two = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool user_is_other(int slot)
{
	return two && slot % 2 == 1;
}

void user_become(int slot)
{
	if (user_is_other(slot))
		become_other();
}

/* ---- the hostile one ---- */

/* The queue of the lock's file, or of a lock in this directory. */
static int open_queue(const char *name)
{
	char pattern[PATH_MAX];
	struct stat status;
	glob_t found;
	int fd = -1;

	if (stat(name, &status) != 0)
		return -1;
	snprintf(pattern, sizeof pattern, QUEUE_DIRECTORY "/semlock-%llx-%llx*",
	    (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0)
		fd = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	globfree(&found);
	return fd;
}

/* A ticket before all others, among those of --replace, or among the ordinary ones of this
 * moment. */
static off_t any_ticket(void)
{
	long long now = (long long)now_ns(), shift = (long long)pick(2000000);

	switch (pick(3)) {
	case 0:
		return 1 + (off_t)pick(100);
	case 1:
		return (off_t)(2 * (now - shift));
	}
	return (off_t)((1LL << 61) + 2 * (now - shift));
}

static bool lock_ticket(int queue, short type, off_t ticket)
{
	struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = ticket, .l_len = 1};

	return fcntl(queue, F_OFD_SETLK, &byte) == 0;
}

/* Locks the next ticket before it unlocks the last. */
static void flip_tickets(int queue)
{
	off_t last = any_ticket(), next;

	lock_ticket(queue, F_WRLCK, last);
	for (unsigned flips = pick(200); flips > 0; flips--, last = next) {
		next = any_ticket();
		lock_ticket(queue, F_WRLCK, next);
		if (next != last)
			lock_ticket(queue, F_UNLCK, last);
		if (pick(4) == 0)
			pause_us((long)pick(300));
	}
}

/* Keeps the ticket until three contenders have entered in spite of it. */
static void block(int queue)
{
	long entries = atomic_load(&board->inside) + 3;

	lock_ticket(queue, F_WRLCK, 1);
	note('H', getpid(), -1);
	while (atomic_load(&board->inside) < entries)
		pause_us(1000);
	atomic_fetch_add(&board->blocks, 1);
}

static void be_hostile(void)
{
	int queue;

	for (;; pause_us((long)pick(20000))) {
		queue = open_queue(pick(2) == 0 ? "lock" : ".");
		if (queue < 0)
			continue;
		if (pick(200) == 0)
			block(queue);
		else
			flip_tickets(queue);
		close(queue);
		atomic_fetch_add(&board->bursts, 1);
	}
}

pid_t hostile_start(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		fatal("fork");
	if (pid > 0)
		return pid;
	user_become(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		be_hostile();
	_exit(2);
}

void hostile_end(pid_t hostile)
{
	if (hostile == 0)
		return;
	kill(hostile, SIGKILL);
	waitpid(hostile, NULL, 0);
}
