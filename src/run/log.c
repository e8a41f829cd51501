/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lock/slots.h"
#include "methods/kernel/safe_open.h"
#include "report/status_fd.h"
#include "report/text.h"
#include "run/log.h"
#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/memory.h"
#include "sys/waiting.h"

/* ---- opened before the lock is taken ---- */

/* Open or create PATH.  With fs.protected_regular, O_CREAT fails with EACCES for another user's
 * file, even for root: try without it first.  O_NONBLOCK: a FIFO may have no reader.  0600: the log
 * contains commands. */
static int open_plainly(const char *path, int more)
{
	const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more;
	int fd = open(path, flags);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	return fd < 0 && errno == EEXIST ? open(path, flags) : fd;
}

/* Are A and B the same name in the same directory?  Neither need exist. */
static bool is_one_name(const char *a, const char *b)
{
	char space[PATH_MAX];
	const char *directory, *slash = strrchr(a, '/'), *other = strrchr(b, '/');
	struct stat of_a, of_b;

	if (strcmp(slash == NULL ? a : slash + 1, other == NULL ? b : other + 1) != 0)
		return false;
	directory = path_directory(a, space);
	if (directory == NULL || stat(directory, &of_a) != 0)
		return false;
	directory = path_directory(b, space);
	return directory != NULL && stat(directory, &of_b) == 0 &&
	       same_file(identity_of(&of_a), identity_of(&of_b));
}

/* Is PATH a lock made of files?  Such a lock is held while its name exists: an empty log there
 * would be a lock without an owner. */
static bool is_a_lock(const char *path, const struct request *request)
{
	if (request->spec.method->family != OF_FILES)
		return false;
	for (unsigned i = 0; i < request->nlocks; i++)
		if (request->locks[i].name != NULL && is_one_name(path, request->locks[i].name))
			return true;
	return false;
}

/* Log rotation may have renamed or removed the file during the run.  If the log's name means
 * another file now, or none, open it again. */
static void log_follow(struct run_log *log, const struct request *request)
{
	struct stat named, opened;
	struct error ignored;
	char path[PATH_MAX];
	int flags, fd;

	if (log->name == NULL || fstat(log->fd, &opened) != 0 ||
	    (stat(log->name, &named) == 0 && same_file(identity_of(&named), identity_of(&opened))))
		return;
	flags = safe_open_follow(log->name, LINKS_OF_CALLER_AND_ROOT, path, &ignored);
	if (flags < 0 || is_a_lock(path, request))
		return;
	fd = descriptor_above_standard(open_plainly(path, flags));
	if (fd < 0)
		return;
	close(log->fd);
	log->fd = fd;
}

/* NAME as an absolute path, for use from any directory; NULL if it is not known. */
static const char *name_from_anywhere(const char *name)
{
	char space[PATH_MAX], *copy = NULL;
	const char *absolute = path_absolute(name, space);

	if (absolute == name)
		return name;
	if (absolute != NULL)
		copy = memory_lasting(strlen(absolute) + 1);
	return copy == NULL ? NULL : strcpy(copy, absolute);
}

int log_open(struct run_log *log, const struct request *request, struct error *error)
{
	char path[PATH_MAX];
	int flags = safe_open_follow(request->log, LINKS_OF_CALLER_AND_ROOT, path, error);

	if (flags < 0) {
		complain("--log %s: %s; this run is not logged", request->log, error->text);
		return 0;
	}
	if (is_a_lock(path, request))
		return error_plain(error, ERROR_USAGE,
		    "--log %s: this is the lock itself; give the log another name", request->log);
	log->fd = descriptor_above_standard(open_plainly(path, flags));
	log->name = request->detach ? name_from_anywhere(request->log) : request->log;
	/* the caller's descriptor for the lock is closed, and the log got its number: the log must
	 * not be taken for the lock */
	if (log->fd >= 0 && log->fd == request->locks[0].fd) {
		log->fd = fcntl(log->fd, F_DUPFD_CLOEXEC, log->fd + 1);
		close(request->locks[0].fd);
	}
	if (log->fd < 0)
		complain("--log %s: cannot open: %s; this run is not logged", request->log,
		    strerror(errno));
	return 0;
}

/* ---- the line ---- */

static void put_words(FILE *out, char **words)
{
	fputs("\"command\": [", out);
	for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
		fputs(i == 0 ? "" : ", ", out);
		json_string(out, words[i], strlen(words[i]));
	}
	fputs("], ", out);
}

static void put_slot(FILE *out, int slot, const struct lock *lock)
{
	if (slot >= 0 && lock->spec->take > 1)
		json_text(out, "slot", slots_text(lock));
	else
		json_number(out, "slot", slot, slot >= 0);
}

static void put_user(FILE *out)
{
	const struct passwd *user = getpwuid(geteuid());
	char number[24];

	snprintf(number, sizeof number, "%lu", (unsigned long)geteuid());
	json_text(out, "user", user == NULL ? number : user->pw_name);
}

static void put_line(FILE *out, const struct run_log *log, const struct request *request,
    const struct run_outcome *outcome, const struct lock *locks)
{
	time_t now = time(NULL);
	char moment[32], words[40], note[NOTE_SIZE];

	strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	outcome_text(outcome, words, sizeof words);
	putc('{', out);
	json_text(out, "time", moment);
	json_text(out, "lock", request->label);
	json_text(out, "method", request->spec.method->name);
	json_text(out, "mode", mode_text(mode_asked(&request->locks[0])));
	put_slot(out, outcome->slot, locks);
	json_number(out, "pid", (long long)outcome->pid, outcome->pid > 0);
	put_user(out);
	put_words(out, request->command);
	text_note(note, request->spec.note);
	json_text(out, "note", request->spec.note == NULL ? NULL : note);
	json_number(out, "place", (long long)log->place, log->place > 0);
	fprintf(out,
	    "\"waited\": " STATUS_FD_SECONDS ", \"held\": " STATUS_FD_SECONDS ", \"outcome\": ",
	    STATUS_FD_TIME(outcome->waited), STATUS_FD_TIME(outcome->held));
	json_string(out, words, strlen(words));
	fputs("}\n", out);
}

/* The byte that each semlock locks while it writes its line, far beyond the last line. */
enum { WRITERS_BYTE = INT32_MAX };

/* Keep other semlocks from writing to FD's file until FD is closed.  If one is writing, wait for
 * it, but at most 5 s: it may be stopped.  Returns false if it is still writing then; true also if
 * the file system does not have such locks. */
static bool is_only_writer(int fd)
{
	struct flock byte = {.l_type = F_WRLCK,
	    .l_whence = SEEK_SET,
	    .l_start = WRITERS_BYTE,
	    .l_len = 1};
	const struct deadline patience = deadline_after(5 * SECOND);

	while (fcntl(fd, F_OFD_SETLK, &byte) != 0 && (errno == EAGAIN || errno == EACCES))
		if (deadline_left(&patience) == 0 || nap(MILLISECOND) != 0)
			return false;
	return true;
}

/* Only USED bytes of a line were written: the disk is full, or the file is at its limit.  Remove
 * them, or the next line would be appended to them.  Do not call this while another process may
 * write: its line would be cut off, too. */
static void take_back(int fd, ssize_t used)
{
	struct stat file;
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (used <= 0 || end < used || fstat(fd, &file) != 0 || file.st_size != end)
		return;
	CRASH_POINT("log.half");
	if (ftruncate(fd, end - used) != 0)
		complain("--log: part of a line stays in it: %s", strerror(errno));
}

void log_write(struct run_log *log, const struct request *request,
    const struct run_outcome *outcome, const struct lock *locks)
{
	char *line = NULL;
	size_t length = 0;
	ssize_t written = -1;
	bool alone;
	FILE *out;

	if (log->fd < 0)
		return;
	log_follow(log, request);
	out = open_memstream(&line, &length);
	signal(SIGPIPE, SIG_IGN); /* semlock is about to end */
	signal(SIGXFSZ, SIG_IGN);
	alone = is_only_writer(log->fd);
	if (out != NULL) {
		put_line(out, log, request, outcome, locks);
		if (fclose(out) == 0)
			written = write(log->fd, line, length);
	}
	if (written != (ssize_t)length) {
		complain("--log %s: cannot write: %s", request->log,
		    written >= 0 ? "no room for the whole line" : strerror(errno));
		if (alone)
			take_back(log->fd, written);
	}
	close(log->fd); /* the next semlock may write */
	log->fd = -1;
	free(line);
}
