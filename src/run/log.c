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
#include <time.h>
#include <unistd.h>

#include "lock/slots.h"
#include "methods/kernel/safe_open.h"
#include "report/error.h"
#include "report/status_fd.h"
#include "report/text.h"
#include "run/run.h"
#include "sys/deadline.h"
#include "sys/files.h"

static int log_fd = -1;
static int64_t opened; /* ns on clock_now()'s clock */
static size_t place;   /* 0: did not wait */

/* Not with O_CREAT alone: with fs.protected_regular even root may not open another user's file so.
 * O_NONBLOCK: a FIFO may have no reader. */
static int open_plainly(const char *path, int more)
{
	const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more;
	int fd = open(path, flags);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, flags | O_CREAT | O_EXCL, 0666);
	return fd < 0 && errno == EEXIST ? open(path, flags) : fd;
}

/* A symbolic link that another user has put into a directory open to all is not followed. */
void log_open(const struct request *request)
{
	char path[PATH_MAX];
	struct error error;
	int flags;

	opened = clock_now();
	status_fd_note_outcome();
	flags = safe_open_follow(request->log, path, &error);
	if (flags < 0) {
		complain("--log %s: %s; this run is not logged", request->log, error.text);
		return;
	}
	log_fd = open_plainly(path, flags);
	log_fd = descriptor_above_standard(log_fd);
	/* the caller's is closed: not this file is meant */
	if (log_fd >= 0 && log_fd == request->locks[0].fd) {
		log_fd = fcntl(log_fd, F_DUPFD_CLOEXEC, log_fd + 1);
		close(request->locks[0].fd);
	}
	if (log_fd < 0)
		complain("--log %s: cannot open: %s; this run is not logged", request->log,
		    strerror(errno));
}

void log_place(size_t nth)
{
	place = nth;
}

static void put_words(FILE *out, char **words)
{
	fputs("\"command\": [", out);
	for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
		fputs(i == 0 ? "" : ", ", out);
		json_string(out, words[i], strlen(words[i]));
	}
	fputs("], ", out);
}

static void put_line(FILE *out, const struct request *request, const struct job *job)
{
	static const char *const modes[] = {[EXCLUSIVE] = "exclusive", [SHARED] = "shared"};
	int64_t held = held_time(), waited = clock_now() - opened - held;
	const struct passwd *user = getpwuid(geteuid());
	const char *outcome = status_fd_outcome();
	bool ran = job != NULL && job->child.pid > 0 &&
	           strncmp(outcome, "not-run", strlen("not-run")) != 0;
	time_t now = time(NULL);
	char moment[32], number[24];

	strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	putc('{', out);
	json_text(out, "time", moment);
	json_text(out, "lock", request->label);
	json_text(out, "method", request->spec.method->name);
	json_text(out, "mode", request->spec.slots > 0 ? "slot" : modes[request->locks[0].mode]);
	if (job != NULL && job->slot >= 0 && request->spec.take > 1)
		json_text(out, "slot", slots_text(job->locks));
	else
		json_number(out, "slot", job == NULL ? 0 : job->slot,
		    job != NULL && job->slot >= 0);
	json_number(out, "pid", ran ? (long long)job->child.pid : 0, ran);
	snprintf(number, sizeof number, "%lu", (unsigned long)geteuid());
	json_text(out, "user", user == NULL ? number : user->pw_name);
	put_words(out, request->command);
	json_number(out, "place", (long long)place, place > 0);
	fprintf(out,
	    "\"waited\": " STATUS_FD_SECONDS ", \"held\": " STATUS_FD_SECONDS ", \"outcome\": ",
	    STATUS_FD_TIME(waited), STATUS_FD_TIME(held));
	json_string(out, outcome, strlen(outcome));
	fputs("}\n", out);
}

int log_write(const struct request *request, const struct job *job, int status)
{
	char *line = NULL;
	size_t length = 0;
	ssize_t written = -1;
	FILE *out;

	if (log_fd < 0)
		return status;
	out = open_memstream(&line, &length);
	signal(SIGPIPE, SIG_IGN); /* semlock is about to end */
	signal(SIGXFSZ, SIG_IGN);
	if (out != NULL) {
		put_line(out, request, job);
		if (fclose(out) == 0)
			written = write(log_fd, line, length);
	}
	if (written != (ssize_t)length)
		complain("--log %s: cannot write: %s", request->log,
		    written >= 0 ? "no room for the whole line" : strerror(errno));
	free(line);
	return status;
}
