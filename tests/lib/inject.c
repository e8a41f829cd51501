/* SPDX-License-Identifier: MIT */
/* inject - runs a command whose system calls fail, or come late, as asked, without tracing it.
 *
 *	inject first|all|until-exec CALL=ERROR[@N[+]]|CALL+MS... -- COMMAND [ARGUMENT...]
 *
 * CALL and ERROR are numbers; CALL may be fork, vfork or clone, too.  In each process the N-th
 * CALL since COMMAND was executed fails with ERROR, and is not made; with "+" so do all after it;
 * without @N, every one does.  CALL+MS: every CALL is made MS milliseconds later than asked for.
 *	first       in COMMAND's own process alone
 *	all         in COMMAND's process and in all that descend from it
 *	until-exec  likewise, up to the moment at which a process executes another program
 * With all and until-exec, ends when the last of these processes has ended.  Ends as COMMAND did.
 *
 * It is a seccomp filter that notifies this process of those calls alone (Linux 5.9): strace(1)
 * stops a process at each call, which takes twice the time of the call and all else. */
#include <config.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "seccomp.h"

enum { MOST = 16, PROCESSES = 4096 };
enum reach { FIRST, ALL, UNTIL_EXEC };

static struct injection {
	int call, error;
	unsigned from; /* 1 is the first call; 0: none fails */
	int for_ever;
	int delay; /* ms */
} injections[MOST];
static int count;
static int delays_only = 1;

static struct process {
	pid_t pid;
	int executed;
	unsigned calls[MOST];
} processes[PROCESSES];

/* Calls that are made later, in the order of their time. */
static struct {
	uint64_t id;
	long long due; /* ms */
} late[PROCESSES];
static unsigned late_first, late_end;

static void fatal(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void usage(void)
{
	fprintf(stderr, "usage: inject first|all|until-exec CALL=ERROR[@N[+]]|CALL+MS... -- "
			"COMMAND [ARGUMENT...]\n");
	exit(125);
}

/* Reads the call that TEXT begins with; returns what follows. */
static const char *read_call(const char *text, int *call)
{
	static const struct {
		const char *name;
		int call;
	} names[] = {
#ifdef SYS_fork
	    {"fork", SYS_fork},
#endif
#ifdef SYS_vfork
	    {"vfork", SYS_vfork},
#endif
	    {"clone", SYS_clone},
	};
	char *end;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = strlen(names[i].name);

		if (strncmp(text, names[i].name, length) == 0) {
			*call = names[i].call;
			return text + length;
		}
	}
	*call = (int)strtol(text, &end, 10);
	if (end == text)
		usage();
	return end;
}

static void read_injection(const char *text)
{
	struct injection *injection = &injections[count++];
	char plus = '\0';
	int fields;

	if (count > MOST)
		usage();
	text = read_call(text, &injection->call);
	if (sscanf(text, "+%d", &injection->delay) == 1)
		return;
	delays_only = 0;
	fields = sscanf(text, "=%d@%u%c", &injection->error, &injection->from, &plus);
	if (fields < 1)
		usage();
	injection->for_ever = fields == 1 || plus == '+';
	if (fields == 1)
		injection->from = 1;
}

/* The process with that PID, a new one if it is not known. */
static struct process *process_of(pid_t pid)
{
	for (int i = 0; i < PROCESSES; i++) {
		if (processes[i].pid == 0)
			processes[i].pid = pid;
		if (processes[i].pid == pid)
			return &processes[i];
	}
	fprintf(stderr, "inject: too many processes\n");
	exit(125);
}

/* What the filter does with each call: execve(2) and those named come to this process. */
static int install_filter(void)
{
	static struct instruction filter[MOST + 8];
	struct program program = {0, filter};
	int listener;

	filter[program.length++] = (struct instruction){LOAD, 0, 0, offsetof(struct call, number)};
	for (int i = 0; i <= count; i++) {
		uint32_t call = (uint32_t)(i < count ? injections[i].call : SYS_execve);
		uint8_t to_notify = (uint8_t)(count - i + 1);

		filter[program.length++] = (struct instruction){IF_EQUAL, to_notify, 0, call};
	}
	filter[program.length++] = (struct instruction){RETURN, 0, 0, ALLOW};
	filter[program.length++] = (struct instruction){RETURN, 0, 0, NOTIFY};
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		fatal("prctl");
	/* A signal must not have a call made again, and so counted twice (Linux 5.19). */
	listener = (int)syscall(SYS_seccomp, SET_FILTER, NEW_LISTENER | WAIT_KILLABLE, &program);
	if (listener < 0 && errno == EINVAL)
		listener = (int)syscall(SYS_seccomp, SET_FILTER, NEW_LISTENER, &program);
	return listener;
}

/* As fork(2), but both processes have one table of descriptors, until the child executes a program.
 */
static pid_t fork_with_descriptors(void)
{
	long flags = CLONE_FILES | SIGCHLD;

#ifdef __s390__
	return (pid_t)syscall(SYS_clone, 0, flags, 0, 0, 0);
#else
	return (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
#endif
}

/* The child.  Between the filter and the execution it makes no call: one of those that the filter
 * stops would wait for an answer of the parent, which does not know the listener yet. */
static void become(_Atomic int *listener, char **argv)
{
	*listener = install_filter();
	if (*listener >= 0)
		execvp(argv[0], argv);
	_exit(*listener < 0 ? 125 : 127);
}

/* Waits for the child's listener.  -1: the child could not install its filter. */
static int await(const _Atomic int *listener)
{
	const struct timespec moment = {0, 100000};

	while (*listener == 0)
		nanosleep(&moment, NULL);
	return *listener;
}

/* The error with which the call of that notification is to fail; 0: the call is made. */
static int error_of(const struct notice *notice, enum reach reach, pid_t first)
{
	pid_t pid = (pid_t)notice->pid;
	struct process *process;
	int error = 0;

	if (reach == FIRST && pid != first)
		return 0;
	process = process_of(pid);
	for (int i = 0; i < count; i++) {
		struct injection *injection = &injections[i];

		if (injection->call != notice->call.number)
			continue;
		/* before COMMAND is executed, this is still inject's own process */
		if (pid == first && !process->executed && injection->call != SYS_execve)
			continue;
		process->calls[i]++;
		if (injection->from != 0 &&
		    (process->calls[i] == injection->from ||
			(injection->for_ever && process->calls[i] > injection->from)))
			error = injection->error;
	}
	if (notice->call.number == SYS_execve && error == 0)
		process->executed++;
	return reach == UNTIL_EXEC && process->executed > (pid == first) ? 0 : error;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* ERROR 0: the call is made. */
static void answer(int listener, uint64_t id, int error)
{
	struct answer response = {.id = id, .error = -error};

	if (error == 0)
		response.flags = CONTINUE;
	syscall(SYS_ioctl, listener, ANSWER, &response);
}

/* The milliseconds by which that call is to be made later: 0 for one that makes a thread. */
static int delay_of(const struct notice *notice)
{
	if (notice->call.number == SYS_clone && (notice->call.arguments[0] & CLONE_THREAD))
		return 0;
	for (int i = 0; i < count; i++)
		if (injections[i].call == notice->call.number && injections[i].delay > 0)
			return injections[i].delay;
	return 0;
}

static void hear(int listener, enum reach reach, pid_t first)
{
	struct notice notice;
	int delay;

	memset(&notice, 0, sizeof notice);
	if (syscall(SYS_ioctl, listener, HEAR, &notice) != 0)
		return; /* the process has been killed */
	delay = delay_of(&notice);
	if (delay == 0 || late_end - late_first == PROCESSES) {
		answer(listener, notice.id, delays_only ? 0 : error_of(&notice, reach, first));
		return;
	}
	late[late_end % PROCESSES].id = notice.id;
	late[late_end % PROCESSES].due = now() + delay;
	late_end++;
}

/* Has the calls made whose time has come; returns the ms until the next one's, -1: there is none.
 */
static int let_late_ones_go(int listener)
{
	for (; late_first != late_end; late_first++) {
		long long left = late[late_first % PROCESSES].due - now();

		if (left > 0)
			return (int)left;
		answer(listener, late[late_first % PROCESSES].id, 0);
	}
	return -1;
}

/* Ends as STATUS says: with that status, or of that signal, without a core. */
static int end_as(int status)
{
	struct rlimit none = {0, 0};
	sigset_t all;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* Answers until the first process has ended, and with another reach than FIRST until all have;
 * returns the status. */
static int serve(int listener, enum reach reach, pid_t first)
{
	sigset_t child;
	struct pollfd told[2] = {{listener, POLLIN, 0}, {-1, POLLIN, 0}};
	struct signalfd_siginfo news;
	int status = 0, ended = 0;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	told[1].fd = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
	for (;;) {
		if (!ended && waitpid(first, &status, WNOHANG) == first)
			ended = 1;
		if (ended && reach == FIRST)
			return status;
		if (poll(told, 2, let_late_ones_go(listener)) < 0 && errno != EINTR)
			fatal("poll");
		if (told[1].revents != 0 && read(told[1].fd, &news, sizeof news) < 0 &&
		    errno != EAGAIN)
			fatal("read");
		if (told[0].revents & POLLIN)
			hear(listener, reach, first);
		else if (told[0].revents != 0)
			told[0].fd = -1, reach = FIRST; /* no process has the filter any more */
	}
}

int main(int argc, char **argv)
{
	_Atomic int *listener;
	enum reach reach;
	pid_t first;

	if (argc < 4)
		usage();
	reach = strcmp(argv[1], "first") == 0 ? FIRST
	        : strcmp(argv[1], "all") == 0 ? ALL
	                                      : UNTIL_EXEC;
	for (argv += 2; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		read_injection(*argv);
	if (*argv == NULL || argv[1] == NULL)
		usage();
	listener =
	    mmap(NULL, sizeof *listener, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (listener == MAP_FAILED)
		fatal("mmap");
	first = fork_with_descriptors();
	if (first < 0)
		fatal("clone");
	if (first == 0)
		become(listener, argv + 1);
	if (await(listener) < 0) {
		fprintf(stderr, "inject: seccomp(2) is refused\n");
		return 125;
	}
	return end_as(serve(*listener, reach, first));
}
