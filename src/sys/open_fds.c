/* SPDX-License-Identifier: MIT */
/* /proc/locks:   "7: FLOCK  ADVISORY  WRITE 4711 fe:00:262402 0 EOF", and for each process
 *                that waits for it "7: -> FLOCK  ADVISORY  WRITE 4712 fe:00:262402 0 EOF"
 * fdinfo/N:      "lock:\t1: OFDLCK ADVISORY  READ  -1 fe:00:262402 0 9" */
#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/open_fds.h"
#include "sys/process.h"

#ifndef SYS_statx /* older headers; the number depends on the architecture: do without the call */
#define SYS_statx -1
#endif

static unsigned kind_named(const char *name)
{
	if (strcmp(name, "FLOCK") == 0)
		return KIND_FLOCK;
	if (strcmp(name, "OFDLCK") == 0)
		return KIND_OFD;
	return strcmp(name, "POSIX") == 0 ? KIND_POSIX : 0;
}

FILE *procfs_locks(char page[PROCFS_PAGE])
{
	FILE *locks = fopen("/proc/locks", "re");

	if (locks != NULL)
		setvbuf(locks, page, _IOFBF, PROCFS_PAGE);
	return locks;
}

bool procfs_lock_line(const char *line, struct procfs_lock *lock)
{
	char kind[16], mode[16], last[24];
	const char *rest = strchr(line, ':');

	if (strncmp(line, "lock:", 5) == 0)
		rest = strchr(line + 5, ':');
	if (rest == NULL)
		return false;
	*lock = (struct procfs_lock){0};
	rest += 1 + strspn(rest + 1, " \t");
	if (strncmp(rest, "->", 2) == 0) {
		lock->waiting = true;
		rest += 2;
	}
	if (sscanf(rest, "%15s %*s %15s %ld %x:%x:%llu %lld %23s", kind, mode, &lock->pid,
		&lock->major, &lock->minor, &lock->inode, &lock->first, last) != 8)
		return false;
	lock->kind = kind_named(kind);
	lock->exclusive = strcmp(mode, "WRITE") == 0;
	lock->last = strcmp(last, "EOF") == 0 ? LLONG_MAX : strtoll(last, NULL, 10);
	return lock->kind != 0;
}

bool procfs_same_lock(const struct procfs_lock *earlier, const struct procfs_lock *later)
{
	return later->kind == earlier->kind && later->waiting == earlier->waiting &&
	       later->exclusive == earlier->exclusive &&
	       (later->pid == earlier->pid || later->pid == 0) && later->first == earlier->first &&
	       later->last == earlier->last;
}

void seen_lessened(enum seen *seen, enum seen by)
{
	if (*seen < by)
		*seen = by;
}

static void append_fd(struct open_fds *open_fds, const struct open_fd *open_fd)
{
	struct open_fd *list = open_fds->list;

	/* the list is full whenever COUNT is 0 or a power of two */
	if ((open_fds->count & (open_fds->count - 1)) == 0)
		list =
		    realloc(list, (open_fds->count == 0 ? 1 : 2 * open_fds->count) * sizeof *list);
	if (list == NULL) {
		open_fds->seen = SEEN_FAILED;
		return;
	}
	open_fds->list = list;
	list[open_fds->count++] = *open_fd;
}

/* struct statx, which older headers lack. */
struct statx_answer {
	uint32_t before[8];
	uint64_t inode, between[12];
	uint32_t device_major, device_minor;
	uint64_t after[14];
};
enum { DONT_SYNC = 0x4000, WANT_INODE = 0x100 };

bool open_fds_identify(int directory, const char *name, int flags, struct identity *file)
{
	struct statx_answer answer;
	struct stat found;

	if (syscall(SYS_statx, directory, name, flags | DONT_SYNC, WANT_INODE, &answer) == 0) {
		*file = (struct identity){makedev(answer.device_major, answer.device_minor),
		    (ino_t)answer.inode};
		return true;
	}
	/* EPERM: a container's seccomp filter does not know the call */
	if (errno != ENOSYS && errno != EPERM)
		return false;
	if (fstatat(directory, name, &found, flags) != 0)
		return false;
	*file = identity_of(&found);
	return true;
}

/* Add the locks that OPEN_FD's descriptor carries, or OPEN_FD alone if it carries none.  If the
 * process has ended by now, or its descriptor is another file's, add nothing. */
static void add_locks(struct open_fds *open_fds, struct open_fd open_fd)
{
	char name[64], path[64], *line = NULL;
	const size_t before = open_fds->count;
	struct identity now;
	size_t size = 0;
	FILE *info;

	snprintf(name, sizeof name, "/proc/%ld/fdinfo/%d", (long)open_fd.thread, open_fd.fd);
	snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)open_fd.thread, open_fd.fd);
	info = fopen(name, "re");
	if (info == NULL)
		return;
	open_fd.locked = true;
	while (getline(&line, &size, info) > 0)
		if (procfs_lock_line(line, &open_fd.lock))
			append_fd(open_fds, &open_fd);
	free(line);
	fclose(info);
	open_fd.locked = false;
	if (!open_fds_identify(AT_FDCWD, path, 0, &now) || !same_file(now, open_fd.identity))
		open_fds->count = before;
	else if (open_fds->count == before)
		append_fd(open_fds, &open_fd);
}

static void add_fd(struct open_fds *open_fds, struct open_fd open_fd)
{
	if (open_fds->files == NULL) /* in a walk: all files */
		append_fd(open_fds, &open_fd);
	for (open_fd.file = 0; open_fd.file < open_fds->nfiles; open_fd.file++)
		if (same_file(open_fd.identity, open_fds->files[open_fd.file]))
			add_locks(open_fds, open_fd);
}

/* Add the descriptors of process PID, as /proc shows them for THREAD. */
static enum fds_shown add_fds_of(struct open_fds *open_fds, pid_t pid, pid_t thread)
{
	char path[64];
	struct dirent *entry;
	struct open_fd open_fd = {.pid = pid, .thread = thread};
	enum fds_shown shown = FDS_NONE;
	DIR *open;

	snprintf(path, sizeof path, "/proc/%ld/fd", (long)thread);
	open = opendir(path);
	if (open == NULL)
		return errno == EACCES || errno == EPERM ? FDS_REFUSED : FDS_SOME;
	errno = 0;
	while ((entry = readdir(open)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0])) {
			shown = FDS_SOME;
			open_fd.fd = (int)strtol(entry->d_name, NULL, 10);
			if (open_fds_identify(dirfd(open), entry->d_name, 0, &open_fd.identity))
				add_fd(open_fds, open_fd);
		}
		errno = 0;
	}
	if (errno == EACCES || errno == EPERM)
		shown = FDS_REFUSED;
	else if (errno != 0)
		shown = FDS_SOME;
	closedir(open);
	return shown;
}

void open_fds_of(struct open_fds *open_fds, pid_t pid)
{
	enum fds_shown shown = add_fds_of(open_fds, pid, pid);
	const pid_t thread = process_thread_with_files(pid, shown);

	if (thread != pid)
		shown = add_fds_of(open_fds, pid, thread);
	if (shown == FDS_REFUSED)
		seen_lessened(&open_fds->seen, SEEN_NOT_ALL);
}

bool open_fds_see(pid_t pid, void *context)
{
	struct open_fds *open_fds = context;

	open_fds_of(open_fds, pid);
	if (open_fds->limit != NULL &&
	    (FAULT_POINT("open_fds.cut") || allowance_spent(open_fds->limit)))
		seen_lessened(&open_fds->seen, SEEN_CUT);
	return open_fds->seen < SEEN_CUT;
}

/* Return for how many ns a walk that took TOOK ns may be reused: four times TOOK, but at least 40
 * ms.  So repeated searches spend at most a fifth of their time walking, and soon see what a walk
 * missed.  A walk in pieces does not expire: its caller drops it. */
static int64_t lasts(const struct fd_walk *walk, int64_t took)
{
	enum { LASTS = 4 }; /* how many times as long as it took */

	if (walk->piece > 0)
		return INT64_MAX / 2;
	return LASTS * (took > 10 * MILLISECOND ? took : 10 * MILLISECOND);
}

bool fd_walk_go_on(struct fd_walk *walk)
{
	const int64_t began = clock_now();
	pid_t pid;

	if (walk->whole && began <= walk->until)
		return true;
	if (walk->proc == NULL) {
		fd_walk_drop(walk);
		walk->proc = opendir("/proc");
	}
	do {
		CRASH_POINT("open_fds.walk");
		pid = walk->proc == NULL ? 0 : process_next(walk->proc);
		walk->whole = pid == 0 || !open_fds_see(pid, &walk->all);
	} while (!walk->whole && (walk->piece == 0 || clock_now() - began < walk->piece));
	if (!walk->whole)
		return false;
	if (walk->proc != NULL)
		closedir(walk->proc);
	walk->proc = NULL;
	walk->until = clock_now() + lasts(walk, clock_now() - began);
	return true;
}

void fd_walk_drop(struct fd_walk *walk)
{
	if (walk == NULL)
		return;
	if (walk->proc != NULL)
		closedir(walk->proc);
	open_fds_forget(&walk->all);
	*walk = (struct fd_walk){.piece = walk->piece};
}

void open_fds_find(struct open_fds *open_fds, struct fd_walk *walk)
{
	if (walk == NULL) {
		process_each(open_fds_see, open_fds);
		return;
	}
	while (!fd_walk_go_on(walk))
		;
	seen_lessened(&open_fds->seen, walk->all.seen);
	for (size_t i = 0; i < walk->all.count; i++)
		add_fd(open_fds, walk->all.list[i]);
}

void open_fds_refresh(struct open_fds *open_fds)
{
	struct open_fds before = *open_fds;
	struct open_fd *open_fd;

	open_fds->list = NULL;
	open_fds->count = 0;
	for (size_t i = 0; i < before.count; i++) {
		open_fd = &before.list[i];
		/* a descriptor with several locks appears several times in a row */
		if (i == 0 || open_fd->pid != open_fd[-1].pid || open_fd->fd != open_fd[-1].fd)
			add_locks(open_fds, *open_fd);
	}
	free(before.list);
}

void open_fds_forget(struct open_fds *open_fds)
{
	free(open_fds->list);
	*open_fds = (struct open_fds){0};
}

/* Is FD, which is not open, beyond the end of this process's table of descriptors?  select(2)
 * ignores such a number, but fails for a number within the table that is not open.  (To poll(2) all
 * numbers at once would ask the servers of FUSE files, which may hang.) */
static bool is_behind_table(int fd)
{
	struct timeval no_time = {0, 0};
	fd_set set;

	FD_ZERO(&set);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* in musl's macro */
	FD_SET(fd, &set);
#pragma GCC diagnostic pop
	return select(fd + 1, &set, NULL, NULL, &no_time) == 0;
}

bool open_fds_may_inherit(const struct identity *file, const int own[2])
{
	enum { STEP = 64 }; /* the kernel's smallest table, on 64-bit systems */
	struct identity one;

	for (int fd = 0; fd < FD_SETSIZE; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			if (fd % STEP == 0 && is_behind_table(fd))
				return false;
		} else if (fd != own[0] && fd != own[1] &&
			   open_fds_identify(fd, "", AT_EMPTY_PATH, &one) && same_file(one, *file))
			return true;
	}
	return true;
}

int open_fds_same_description(pid_t p, int a, pid_t q, int b)
{
	if (p == q && a == b)
		return 1;
	const int kcmp_file = 0; /* KCMP_FILE: <linux/kcmp.h> is not installed everywhere */
	long order = syscall(SYS_kcmp, p, q, kcmp_file, (unsigned long)a, (unsigned long)b);

	return order < 0 ? -1 : order == 0;
}

/* ---- what must not outlive a lock ---- */

enum { MOST_PIDS = 1 << 17 };

struct holder_search {
	struct pipe_holders *holders;
	char pipe[64]; /* the target of a link to it in /proc/PID/fd; "": no pipe */
	pid_t *pids;   /* all processes */
	size_t count;
};

static bool has_pipe(pid_t pid, const char *pipe)
{
	char path[64], link[64];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *fds;

	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	fds = opendir(path);
	if (fds == NULL)
		return false;
	while (!found && (entry = readdir(fds)) != NULL) {
		n = readlinkat(dirfd(fds), entry->d_name, link, sizeof link - 1);
		link[n > 0 ? n : 0] = '\0';
		found = strcmp(link, pipe) == 0;
	}
	closedir(fds);
	return found;
}

static bool is_holder(const struct holder_search *search, pid_t pid)
{
	struct pipe_holders *holders = search->holders;

	if (!process_lives(pid) ||
	    (!process_descends(pid, holders->ancestor, holders->since, holders->except) &&
		(search->pipe[0] == '\0' || !has_pipe(pid, search->pipe))))
		return false;
	if (kill(pid, 0) != 0 && errno == EPERM)
		holders->refused = pid;
	return true;
}

/* Open the pidfd before examining the process, so that the signal can reach only the process that
 * was examined.  If pidfd_open(2) is refused, by an old kernel (ENOSYS), a container's filter
 * (EPERM) or a limit, use kill(2). */
static bool signal_holder(const struct holder_search *search, pid_t pid, int signo)
{
	int fd = pidfd_of(pid);
	bool found = (fd >= 0 || errno != ESRCH) && is_holder(search, pid);

	if (found && fd >= 0)
		pidfd_send(fd, signo);
	else if (found)
		kill(pid, signo);
	if (fd >= 0)
		close(fd);
	return found;
}

/* Wait for PID alone: waitpid(-1) could reap UNREAPED, which must stay a zombie. */
static bool has_reaped(pid_t pid, const struct pipe_holders *holders)
{
	return holders->unreaped > 0 && pid != holders->unreaped &&
	       waitpid(pid, NULL, WNOHANG) == pid;
}

static bool note_pid(pid_t pid, void *context)
{
	struct holder_search *search = context;

	if (pid > 1 && pid != getpid() && pid != search->holders->except)
		search->pids[search->count++] = pid;
	return search->count < MOST_PIDS;
}

/* The PID that the kernel gave out last; 0: unknown. */
static pid_t youngest_pid(void)
{
	char text[128], *last;

	if (process_file("/proc/loadavg", text, sizeof text) <= 0 ||
	    (last = strrchr(text, ' ')) == NULL)
		return 0;
	return (pid_t)strtol(last, NULL, 10);
}

size_t pipe_holders_signal(struct pipe_holders *holders, int signo)
{
	struct holder_search search = {.holders = holders,
	    .pids = malloc(MOST_PIDS * sizeof *search.pids)};
	char self[32];
	size_t found = 0, young = 0;
	pid_t youngest, pid;

	if (search.pids == NULL || !process_numbers_ours()) {
		free(search.pids);
		return 0;
	}
	snprintf(self, sizeof self, "/proc/self/fd/%d", holders->pipe);
	/* only an anonymous pipe belongs to the lock; a terminal or a file may be open in any
	 * process */
	if (readlink(self, search.pipe, sizeof search.pipe - 1) <= 0 ||
	    strncmp(search.pipe, "pipe:[", 6) != 0)
		search.pipe[0] = '\0';
	process_each(note_pid, &search);
	/* Signal the youngest first: if each process of a chain forks the next one and ends, the
	 * oldest would always be gone when its turn comes.  A PID above the one given out last is
	 * older: it is from before the numbers wrapped around. */
	youngest = youngest_pid();
	while (young < search.count && search.pids[young] <= youngest)
		young++;
	for (size_t i = 0; i < search.count; i++) {
		pid = search.pids[(young + search.count - 1 - i) % search.count];
		found += has_reaped(pid, holders) || signal_holder(&search, pid, signo);
	}
	free(search.pids);
	return found;
}

bool pipe_holders_reap(void)
{
	bool reaped = false;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped = true;
	return reaped;
}
