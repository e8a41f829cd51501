/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/text.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/process.h"

/* For older headers; the numbers are the same on every architecture. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

ssize_t process_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), errnum;
	ssize_t got = 0, used = 0;

	if (fd < 0)
		return -1;
	while (
	    (size_t)used < size - 1 && (got = read(fd, text + used, size - 1 - (size_t)used)) > 0)
		used += got;
	errnum = errno;
	close(fd);
	errno = errnum;
	text[used] = '\0';
	return got < 0 ? -1 : used;
}

static ssize_t read_about(pid_t pid, const char *what, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	return process_file(path, text, size);
}

bool procfs_stat(const char *text, struct procfs_stat *seen)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	size_t length;
	long threads;

	if (open == NULL || close == NULL || close < open)
		return false;
	length = (size_t)(close - open - 1);
	if (length >= sizeof seen->name)
		length = sizeof seen->name - 1;
	memcpy(seen->name, open + 1, length);
	seen->name[length] = '\0';
	if (sscanf(close + 1,
		" %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
		&seen->state, &seen->parent, &threads, &seen->started) != 4)
		return false;
	if (seen->state == 'Z' && threads > 1)
		seen->state = 'S'; /* the main thread called pthread_exit(), the others still run */
	return true;
}

bool procfs_ended(char state)
{
	return state == 'Z' || state == 'X';
}

/* Inodes of the machine's first namespaces. */
#define FIRST_PIDNS 0xEFFFFFFC
#define FIRST_TIMENS 0xEFFFFFFA

/* Return how many ns the kernel adds, in this time namespace, to the time since boot and to the
 * start of a process.  Callers subtract them, because a lock's record contains such a start, and is
 * read in other namespaces, too.  Each thread keeps an offset of its own: if threads shared one, a
 * thread could see KNOWN before OFFSET is set, and take a living holder for dead. */
static int64_t boottime_offset(void)
{
	static _Thread_local int64_t offset;
	static _Thread_local bool known;
	struct stat ours;
	char text[256], *line;
	long long seconds, ns;

	if (known)
		return offset;
	known = true;
	if (stat("/proc/self/ns/time", &ours) == 0 && ours.st_ino != FIRST_TIMENS &&
	    process_file("/proc/self/timens_offsets", text, sizeof text) > 0 &&
	    (line = strstr(text, "boottime")) != NULL &&
	    sscanf(line, "boottime %lld %lld", &seconds, &ns) == 2)
		offset = seconds * SECOND + ns;
	return offset;
}

static int64_t tick_ns(void)
{
	long ticks = sysconf(_SC_CLK_TCK);

	return SECOND / (ticks > 0 ? ticks : 100);
}

bool process_stat(pid_t pid, struct procfs_stat *seen)
{
	char text[1024];

	if (read_about(pid, "stat", text, sizeof text) <= 0 || !procfs_stat(text, seen))
		return false;
	seen->started -= (unsigned long long)(boottime_offset() / tick_ns());
	return true;
}

bool process_lives(pid_t pid)
{
	struct procfs_stat seen;

	return process_stat(pid, &seen) && !procfs_ended(seen.state);
}

bool process_stopped(pid_t pid)
{
	struct procfs_stat seen;

	return process_stat(pid, &seen) && seen.state == 'T' && process_numbers_ours();
}

bool process_stopped_or_traced(pid_t pid)
{
	struct procfs_stat seen;

	return process_stat(pid, &seen) && (seen.state == 'T' || seen.state == 't');
}

/* Read the users from TEXT, which is /proc/PID/status.  The program's name cannot fake a line
 * there: the kernel writes a newline in it as a backslash and an "n". */
static void read_users(const char *text, struct process *process)
{
	const char *line = strstr(text, "\nUid:");
	unsigned real, effective;

	if (line != NULL && sscanf(line, "\nUid: %u %u", &real, &effective) == 2) {
		process->real_user = (uid_t)real;
		process->user = (uid_t)effective;
	}
}

bool process_read(pid_t pid, struct process *process)
{
	struct procfs_stat seen;
	char text[2048];
	ssize_t got;

	*process = (struct process){.pid = pid, .user = (uid_t)-1, .real_user = (uid_t)-1};
	if (!process_stat(pid, &seen))
		return false;
	process->parent = seen.parent;
	process->started = seen.started;
	memcpy(process->name, seen.name, sizeof process->name);
	if (read_about(pid, "status", text, sizeof text) > 0)
		read_users(text, process);
	got = read_about(pid, "cmdline", process->command, sizeof process->command);
	if (got <= 0) { /* a kernel thread, or a process about to end */
		snprintf(process->command, sizeof process->command, "%s", process->name);
		got = (ssize_t)strlen(process->command) + 1;
	}
	process->command_length = (size_t)got;
	return true;
}

pid_t process_next(DIR *proc)
{
	struct dirent *entry;

	while ((entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			return (pid_t)strtol(entry->d_name, NULL, 10);
	return 0;
}

void process_each(bool (*see)(pid_t pid, void *context), void *context)
{
	DIR *proc = opendir("/proc");
	pid_t pid;

	if (proc == NULL)
		return;
	do
		pid = process_next(proc);
	while (pid != 0 && see(pid, context));
	closedir(proc);
}

struct child_search {
	pid_t parent, found;
	unsigned long long started;
};

static bool is_younger_child(pid_t pid, void *context)
{
	struct child_search *search = context;
	struct procfs_stat seen;

	if (process_stat(pid, &seen) && seen.parent == search->parent &&
	    !procfs_ended(seen.state) && seen.started >= search->started) {
		search->found = pid;
		search->started = seen.started;
	}
	return true;
}

/* Any directory but PID's own will do: when a thread has ended, it is gone from /proc/PID/task,
 * unless it is the first one. */
pid_t process_thread_with_files(pid_t pid, enum fds_shown shown)
{
	struct stat threads;
	pid_t found = pid, one;
	char path[40];
	DIR *tasks;

	if (shown == FDS_SOME)
		return pid;
	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	/* a directory has two links, and this one has another for each thread */
	if (stat(path, &threads) != 0 || threads.st_nlink <= 3 ||
	    (shown == FDS_REFUSED && threads.st_uid != geteuid()))
		return pid;
	tasks = opendir(path);
	while (tasks != NULL && found == pid && (one = process_next(tasks)) != 0)
		found = one;
	if (tasks != NULL)
		closedir(tasks);
	return found;
}

void process_children(pid_t pid, bool (*see)(pid_t pid, void *context), void *context)
{
	char what[32], text[4096], *next = text, *end;
	bool whole;
	ssize_t got;

	snprintf(what, sizeof what, "task/%ld/children", (long)pid);
	got = read_about(pid, what, text, sizeof text);
	whole = got >= 0 && got < (ssize_t)sizeof text - 1;
	for (pid_t child; whole && (child = (pid_t)strtol(next, &end, 10)) > 0; next = end)
		if (!see(child, context))
			return;
	if (!whole)
		process_each(see, context);
}

pid_t process_youngest_child(pid_t pid)
{
	struct child_search search = {.parent = pid};

	process_children(pid, is_younger_child, &search);
	return search.found;
}

/* In /proc/PID/status, "NSpid:" lists the process's PID in each namespace, from that of /proc
 * downwards. */
bool process_is_below(pid_t pid)
{
	char path[40], status[4096], *numbers;

	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	if (process_file(path, status, sizeof status) <= 0)
		return false;
	numbers = strstr(status, "\nNSpid:\t");
	if (numbers == NULL)
		return false;
	numbers += strlen("\nNSpid:\t");
	numbers[strcspn(numbers, "\n")] = '\0';
	return strchr(numbers, '\t') != NULL;
}

bool process_sees_all(void)
{
	struct stat ours;

	return stat("/proc/self/ns/pid", &ours) == 0 && ours.st_ino == FIRST_PIDNS;
}

/* The answer is not cached: a child may be in another PID namespace. */
bool process_numbers_ours(void)
{
	char self[24];
	ssize_t length = readlink("/proc/self", self, sizeof self - 1);

	self[length > 0 ? length : 0] = '\0';
	return length > 0 && strtol(self, NULL, 10) == (long)getpid();
}

bool process_descends(pid_t pid, pid_t ancestor, unsigned long long since, pid_t except)
{
	struct procfs_stat seen;

	if (!process_numbers_ours())
		return false;
	while (pid > 0 && pid != except && process_stat(pid, &seen)) {
		if (seen.parent == ancestor)
			return ancestor > 0 && seen.started >= since;
		pid = seen.parent;
	}
	return false;
}

int64_t process_start(unsigned long long started)
{
	int64_t up, now, age;
	int tries = 0;

	/* Read both clocks at one moment: if the process lost the CPU between the two calls, read
	 * them again.  Otherwise two looks at one process could report starts a second apart. */
	do {
		up = clock_boottime();
		now = clock_realtime();
	} while (clock_boottime() - up > MILLISECOND / 10 && ++tries < 10);
	age = up - boottime_offset() - (int64_t)started * tick_ns();
	return now - (age > 0 ? age : 0);
}

bool process_is_shell(const char *name)
{
	static const char shells[][sizeof "bash"] = {"sh", "ash", "bash", "dash", "ksh", "zsh"};

	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
		if (strcmp(name, shells[i]) == 0)
			return true;
	return false;
}

/* If COMMAND (LENGTH bytes) is "sh -c STRING", with the shell's name at START, return where STRING
 * begins; "-ec" and "-lc" count, too.  Returns 0 if COMMAND is something else. */
static size_t shell_string(const char *command, size_t length, size_t start)
{
	const size_t option = start + strnlen(command + start, length - start) + 1;
	size_t end;

	if (option + 1 >= length || !process_is_shell(command + start) || command[option] != '-' ||
	    command[option + 1] == '-')
		return 0;
	end = option + strnlen(command + option, length - option);
	return end + 1 < length && command[end - 1] == 'c' ? end + 1 : 0;
}

void process_command(const struct process *process, char *text, size_t size, size_t columns)
{
	enum { SHELL_COLUMNS = 24, QUOTES = 2 };
	const char *command = process->command;
	char line[PROCESS_COMMAND + QUOTES];
	size_t length = process->command_length, start = 0, used = 0, string, end;

	while (length > 0 && command[length - 1] == '\0')
		length--;
	for (size_t i = 0; i + 1 < length && command[i] != '\0'; i++)
		if (command[i] == '/' && command[i + 1] != '\0')
			start = i + 1; /* after the program's directory */
	string = shell_string(command, length, start);
	end = string == 0 ? 0 : string + strnlen(command + string, length - string);
	if (string > 0 && columns < SHELL_COLUMNS && length + QUOTES - start > columns)
		start = string;
	for (size_t i = start; i < length; i++) {
		if (i == string && string > 0)
			line[used++] = '\'';
		line[used++] = command[i] == '\0' ? ' ' : command[i];
		if (i + 1 == end)
			line[used++] = '\'';
	}
	text_printable(text, size, line, used, columns);
}

bool process_directory(pid_t pid, char *text, size_t size)
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/%ld/cwd", (long)pid);
	length = readlink(path, text, size - 1);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int pidfd_send(int fd, int signo)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
}

int pidfd_queue(int fd, int signo, int value)
{
	siginfo_t info;

	memset(&info, 0, sizeof info);
	info.si_signo = signo;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = value;
	return (int)syscall(SYS_pidfd_send_signal, fd, signo, &info, 0);
}

/* Translate waitpid(2)'s STATUS into what waitid(2) returns. */
static void describe_status(siginfo_t *info, pid_t child, int status)
{
	info->si_pid = child;
	if (WIFSTOPPED(status)) {
		info->si_code = CLD_STOPPED;
		info->si_status = WSTOPSIG(status);
	} else if (WIFCONTINUED(status)) {
		info->si_code = CLD_CONTINUED;
		info->si_status = SIGCONT;
	} else if (WIFEXITED(status)) {
		info->si_code = CLD_EXITED;
		info->si_status = WEXITSTATUS(status);
	} else {
		info->si_code = CLD_KILLED;
		info->si_status = WTERMSIG(status);
	}
}

static int wait_without_waitid(pid_t child, siginfo_t *info, int options)
{
	int status, flags = options & (WNOHANG | WCONTINUED);
	pid_t got;

	if ((options & WSTOPPED) != 0)
		flags |= WUNTRACED;
	UNINTERRUPTED(got, waitpid(child, &status, flags));
	info->si_pid = 0;
	if (got > 0)
		describe_status(info, got, status);
	return got < 0 ? -1 : 0;
}

int process_wait(idtype_t which, pid_t child, siginfo_t *info, int options)
{
	int got;

	UNINTERRUPTED(got, waitid(which, (id_t)child, info, options));
	if (got == 0 || errno == ECHILD)
		return got;
	return wait_without_waitid(which == P_ALL ? -1 : child, info, options);
}

bool process_child_lives(pid_t child)
{
	siginfo_t ended = {0};
	int got;

	UNINTERRUPTED(got, waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT));
	if (got < 0 && errno != ECHILD) /* waitid(2) is refused */
		return process_lives(child);
	return got == 0 && ended.si_pid == 0;
}

void process_child_signal(pid_t child, int pidfd, int signo)
{
	if (pidfd >= 0)
		pidfd_send(pidfd, signo);
	else if (process_child_lives(child))
		kill(child, signo);
}
