/* SPDX-License-Identifier: MIT */
/* probe-lock.c - the kernel's locks without semlock: a foreign holder, and an independent check. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "probe.h"

static int ofd_or_posix(const char *kind, int ofd, int posix)
{
	if (strcmp(kind, "ofd") == 0)
		return ofd;
	if (strcmp(kind, "posix") == 0)
		return posix;
	misuse("... posix or ofd was expected");
}

static struct flock range(short type, off_t start, off_t length)
{
	struct flock l;

	memset(&l, 0, sizeof l);
	l.l_type = type;
	l.l_whence = SEEK_SET;
	l.l_start = start;
	l.l_len = length;
	return l;
}

/* fcntl-hold FILE posix|ofd read|write START LEN UP DOWN: holds a byte range as hold does. */
int cmd_fcntl_hold(int argc, char **argv)
{
	struct flock l;
	int fd;
	char *hold[] = {argv[0], NULL, NULL, NULL};

	if (argc != 8)
		misuse("fcntl-hold FILE posix|ofd read|write START LEN UP DOWN");
	l = range(strcmp(argv[3], "read") == 0 ? F_RDLCK : F_WRLCK, number(argv[4]),
	    number(argv[5]));
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || fcntl(fd, ofd_or_posix(argv[2], F_OFD_SETLKW, F_SETLKW), &l) != 0)
		fail("cannot lock", argv[1]);
	hold[1] = argv[6];
	hold[2] = argv[7];
	return cmd_hold(3, hold);
}

/* flip FILE US UP: holds low bytes of FILE in turn, locks the next before it unlocks the last,
 * every US microseconds, until it is killed. */
int cmd_flip(int argc, char **argv)
{
	struct flock next = range(F_WRLCK, 1, 1);
	struct flock last = range(F_UNLCK, 0, 1);
	int fd;

	if (argc != 4)
		misuse("flip FILE US UP");
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &next) != 0)
		fail("cannot lock", argv[1]);
	say_ready(open_fifo(argv[3]));
	for (;; usleep((useconds_t)number(argv[2]))) {
		last.l_start = next.l_start;
		do /* past the bytes on which a process sleeps */
			next.l_start = next.l_start % 100000 + 1;
		while (fcntl(fd, F_OFD_SETLK, &next) != 0);
		fcntl(fd, F_OFD_SETLK, &last);
	}
}

/* tickets FILE COUNT UP: takes COUNT low bytes of FILE, and then goes on giving some back and
 * taking them again, until it is killed. */
int cmd_tickets(int argc, char **argv)
{
	struct flock ticket = range(F_WRLCK, 0, 1);
	long count;
	int fd;

	if (argc != 4)
		misuse("tickets FILE COUNT UP");
	count = (long)number(argv[2]);
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	/* All at once, and then the bytes between them given back, last first: for each lock that
	 * is taken, the kernel goes through all that there are, and for these through one. */
	ticket.l_start = 2;
	ticket.l_len = 2 * count - 1;
	if (fcntl(fd, F_OFD_SETLK, &ticket) != 0)
		fail("cannot lock", argv[1]);
	ticket.l_type = F_UNLCK;
	ticket.l_len = 1;
	for (ticket.l_start = 2 * count - 1; ticket.l_start > 2; ticket.l_start -= 2)
		if (fcntl(fd, F_OFD_SETLK, &ticket) != 0)
			fail("cannot unlock", argv[1]);
	say_ready(open_fifo(argv[3]));
	for (long n = 0;; n = (n + 7919) % count) {
		ticket.l_start = 2 * n + 2;
		ticket.l_type = F_UNLCK;
		fcntl(fd, F_OFD_SETLK, &ticket);
		ticket.l_type = F_WRLCK;
		fcntl(fd, F_OFD_SETLK, &ticket);
	}
}

static int try_fcntl(const char *name, const char *kind, off_t start, off_t length)
{
	struct flock l = range(F_WRLCK, start, length);
	int fd = open(name, O_RDWR | O_CLOEXEC);

	if (fd < 0 || fcntl(fd, ofd_or_posix(kind, F_OFD_GETLK, F_GETLK), &l) != 0)
		fail("cannot ask about", name);
	return l.l_type == F_UNLCK ? 0 : l.l_type == F_WRLCK ? 1 : 2;
}

/* Tries LOCK_SH as well, to tell a shared lock from an exclusive one. */
static int try_flock(const char *name)
{
	int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		fail("cannot open", name);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		fail("cannot lock", name);
	return flock(fd, LOCK_SH | LOCK_NB) == 0 ? 2 : 1;
}

/* free FILE [posix|ofd START LEN]: prints free, held or shared; 0, 1, 2. */
int cmd_free(int argc, char **argv)
{
	static const char *const words[] = {"free", "held", "shared"};
	int held;

	if (argc != 2 && argc != 5)
		misuse("free FILE [posix|ofd START LEN]");
	held = argc == 2 ? try_flock(argv[1])
	                 : try_fcntl(argv[1], argv[2], number(argv[3]), number(argv[4]));
	puts(words[held]);
	return held;
}

/* until-free FILE: sleeps in flock(2) until FILE is unlocked. */
int cmd_until_free(int argc, char **argv)
{
	int fd;

	if (argc != 2)
		misuse("until-free FILE");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	alarm(PATIENCE_MS / 1000);
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		fail("cannot lock", argv[1]);
	return 0;
}

/* socket PATH: leaves a socket at PATH. */
int cmd_socket(int argc, char **argv)
{
	struct sockaddr_un at;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memset(&at, 0, sizeof at);
	at.sun_family = AF_UNIX;
	if (argc != 2 || strlen(argv[1]) >= sizeof at.sun_path)
		misuse("socket PATH");
	memcpy(at.sun_path, argv[1], strlen(argv[1]));
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
		fail("cannot bind", argv[1]);
	return 0;
}
