#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "descriptor.h"
#include "locksmith/common/holders.h"
#include "process.h"
#include "procfs.h"
#include "tie.h"

/* The bytes of ties are the even ones from here on, up to twice as far: no file is so long. */
#define FIRST_BYTE (INT64_C(1) << 61)

#define LOOK_EVERY 50 /* ms */

#if HAVE_DECL_F_OFD_SETLK
static int set(int fd, int command, short type, off_t byte)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, command, &lock);
}

/* Is BYTE locked by another description than FD's?  To ask, FD need not be open for writing. */
static bool is_locked(int fd, off_t byte)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static off_t random_byte(void)
{
	uint64_t number = (uint64_t)clock_now() ^ (uint64_t)getpid() << 32;
	int fd;

#ifdef HAVE_GETENTROPY
	if (getentropy(&number, sizeof number) == 0)
		return (off_t)(FIRST_BYTE + (int64_t)(number % FIRST_BYTE & ~UINT64_C(1)));
#endif
	fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &number, sizeof number) < 0)
			number ^= (uint64_t)clock_now() << 20;
		close(fd);
	}
	return (off_t)(FIRST_BYTE + (int64_t)(number % FIRST_BYTE & ~UINT64_C(1)));
}

/* The same file, opened anew.  What the caller reads is not opened for writing, which would keep a
 * script that locks itself from being executed; nor is a FIFO, whose readers wait for its writers. */
static int open_anew(int fd, bool *writable)
{
	char path[40];
	struct stat file;
	int own = -1;

	if (fstat(fd, &file) != 0 ||
	    !(S_ISREG(file.st_mode) || S_ISDIR(file.st_mode) || S_ISCHR(file.st_mode)))
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (*writable)
		own = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (own < 0) {
		*writable = false;
		own = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	}
	return own < 0 ? -1 : descriptor_above_standard(own);
}

/* The kernel makes one lock of two, in which a tie is not to be found again. */
static bool has_already(int fd, off_t byte)
{
	char path[40], text[16384], *rest;
	struct procfs_lock lock;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	if (process_file(path, text, sizeof text) <= 0)
		return false;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (procfs_lock_line(line, &lock) && lock.kind == KIND_OFD && lock.first <= byte &&
		    lock.last >= byte)
			return true;
	return false;
}

int tie_make(struct tie *tie, int fd, struct why *why)
{
	int flags = fcntl(fd, F_GETFL);
	bool callers_writes = (flags & O_ACCMODE) != O_RDONLY, writable = callers_writes;

	*tie = (struct tie){.kind = TIE_NONE, .fd = -1, .byte = random_byte()};
	if (flags < 0)
		return why_set(why, TROUBLE_LOCKABLE, "cannot tie a lock to descriptor %d", fd);
	if (has_already(fd, tie->byte))
		return why_say(why, TROUBLE_USAGE,
		    "descriptor %d has a lock of all bytes, in which a tie would be lost: tie to another "
		    "one, or lock fewer, with --length", fd);
	tie->fd = open_anew(fd, &writable);
	if (tie->fd < 0)
		return 0;
	if (set(tie->fd, F_OFD_SETLK, writable ? F_WRLCK : F_RDLCK, tie->byte + 1) != 0 ||
	    set(fd, F_OFD_SETLK, callers_writes ? F_WRLCK : F_RDLCK, tie->byte) != 0) {
		close(tie->fd);
		tie->fd = -1;
		return 0;
	}
	tie->kind = writable ? TIE_SLEEPS : TIE_LOOKS;
	return 0;
}

void tie_undo(struct tie *tie, int fd)
{
	if (tie->kind != TIE_NONE)
		set(fd, F_OFD_SETLK, F_UNLCK, tie->byte);
}

bool tie_is_held(const struct tie *tie)
{
	return tie->kind != TIE_NONE && is_locked(tie->fd, tie->byte);
}

static void look_for_end(const struct tie *tie, int caller)
{
	struct pollfd end = {caller, POLLIN, 0};

	while (tie_is_held(tie)) {
		poll(&end, 1, LOOK_EVERY);
		if (end.revents != 0)
			end.fd = -1; /* others may have it open still */
	}
}

void tie_await(const struct tie *tie, int caller)
{
	struct pollfd end = {caller, POLLIN, 0};

	if (tie->kind == TIE_NONE)
		while (poll(&end, 1, -1) < 0 && errno == EINTR)
			;
	else if (tie->kind == TIE_LOOKS)
		look_for_end(tie, caller);
	else
		while (set(tie->fd, F_OFD_SETLKW, F_WRLCK, tie->byte) != 0)
			if (errno != EINTR) {
				look_for_end(tie, caller);
				return;
			}
}

void tie_lose(const struct tie *tie)
{
	if (tie->kind != TIE_NONE)
		set(tie->fd, F_OFD_SETLK, F_UNLCK, tie->byte + 1);
}

/* A line of fdinfo that is a tie's; its byte, or -1. */
static off_t byte_in(const char *line)
{
	struct procfs_lock lock;

	if (strncmp(line, "lock:", 5) != 0 || !procfs_lock_line(line, &lock) || lock.waiting ||
	    lock.kind != KIND_OFD || lock.first != lock.last || lock.first < FIRST_BYTE ||
	    lock.first / 2 >= FIRST_BYTE || lock.first % 2 != 0)
		return -1;
	return (off_t)lock.first;
}

/* Call SEE for each tie in the fdinfo file PATH, until it returns true: then true. */
static bool ties_of(const char *path, bool (*see)(off_t byte, void *context), void *context)
{
	char text[16384], *rest;

	if (process_file(path, text, sizeof text) <= 0)
		return false;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		off_t byte = byte_in(line);

		if (byte >= 0 && see(byte, context))
			return true;
	}
	return false;
}

static bool is_this(off_t byte, void *context)
{
	return byte == *(const off_t *)context;
}

static bool has_tie(long pid, void *context)
{
	char path[320];
	struct dirent *entry;
	bool found = false;
	DIR *all;

	snprintf(path, sizeof path, "/proc/%ld/fdinfo", pid);
	all = opendir(path);
	if (all == NULL)
		return false;
	while (!found && (entry = readdir(all)) != NULL) {
		snprintf(path, sizeof path, "/proc/%ld/fdinfo/%s", pid, entry->d_name);
		found = entry->d_name[0] != '.' && ties_of(path, is_this, context);
	}
	closedir(all);
	return found;
}

void tie_signal(const struct tie *tie, int signo, pid_t except)
{
	off_t byte = tie->byte;

	if (tie->kind != TIE_NONE)
		holders_signal_if(has_tie, &byte, signo, except);
}

struct releasing {
	int fd, count;
	bool lost;
};

static bool release_one(off_t byte, void *context)
{
	static const struct timespec a_moment = {0, 2 * MILLISECOND};
	struct releasing *releasing = context;

	releasing->count++;
	releasing->lost = releasing->lost || !is_locked(releasing->fd, byte + 1);
	set(releasing->fd, F_OFD_SETLK, F_UNLCK, byte);
	while (is_locked(releasing->fd, byte + 1))
		nanosleep(&a_moment, NULL);
	return false;
}

int tie_release(int fd, struct why *why)
{
	struct releasing releasing = {.fd = fd};
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	ties_of(path, release_one, &releasing);
	if (releasing.lost)
		return why_say(why, TROUBLE_LOST, "the lock that was tied to it had been lost");
	return releasing.count;
}
struct bytes {
	off_t start, length;
};

static bool is_among(off_t byte, void *context)
{
	const struct bytes *bytes = context;

	return byte >= bytes->start && (bytes->length == 0 || byte - bytes->start < bytes->length);
}

bool tie_among(int fd, off_t start, off_t length)
{
	struct bytes bytes = {start, length};
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	return ties_of(path, is_among, &bytes);
}
#else
int tie_make(struct tie *tie, int fd, struct why *why)
{
	*tie = (struct tie){.kind = TIE_NONE, .fd = -1};
	if (fcntl(fd, F_GETFL) < 0)
		return why_set(why, TROUBLE_LOCKABLE, "cannot tie a lock to descriptor %d", fd);
	return 0;
}

void tie_undo(struct tie *tie, int fd)
{
	(void)tie;
	(void)fd;
}

bool tie_is_held(const struct tie *tie)
{
	(void)tie;
	return false;
}

void tie_lose(const struct tie *tie)
{
	(void)tie;
}

void tie_await(const struct tie *tie, int caller)
{
	struct pollfd end = {caller, POLLIN, 0};

	(void)tie;
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		;
}

void tie_signal(const struct tie *tie, int signo, pid_t except)
{
	(void)tie;
	(void)signo;
	(void)except;
}

int tie_release(int fd, struct why *why)
{
	(void)fd;
	(void)why;
	return 0;
}

bool tie_among(int fd, off_t start, off_t length)
{
	(void)fd;
	(void)start;
	(void)length;
	return false;
}
#endif
