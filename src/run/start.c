/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock/slots.h"
#include "report/text.h"
#include "run/start.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/memory.h"
#include "sys/process.h"
#include "sys/signals.h"

/* ---- its environment ---- */

extern char **environ;

struct variable {
	const char *name;  /* with the "=" */
	const char *value; /* NULL: remove the variable, which an outer lock may have set */
};

/* Compare the prefix first: few variables begin with it. */
static bool is_own_variable(const char *entry, const struct variable *variables, size_t count)
{
	if (strncmp(entry, "SEMLOCK_", strlen("SEMLOCK_")) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strncmp(entry, variables[i].name, strlen(variables[i].name)) == 0)
			return true;
	return false;
}

/* Replace environ at once: setenv(3) would allocate memory for each variable.  Returns 0, or -1
 * without memory. */
static int set_variables(const struct variable *variables, size_t count)
{
	size_t before = 0, used = 0;
	char **list, *text;

	while (environ != NULL && environ[before] != NULL)
		before++;
	list = memory_lasting((before + count + 1) * sizeof *list);
	if (list == NULL)
		return -1;
	for (size_t i = 0; i < before; i++)
		if (!is_own_variable(environ[i], variables, count))
			list[used++] = environ[i];
	for (size_t i = 0; i < count; i++) {
		if (variables[i].value == NULL)
			continue;
		text = memory_lasting(strlen(variables[i].name) + strlen(variables[i].value) + 1);
		if (text == NULL)
			return -1;
		stpcpy(stpcpy(text, variables[i].name), variables[i].value);
		list[used++] = text;
	}
	environ = list;
	return 0;
}

int environment_set(const struct lock *lock, const char *label, struct error *error)
{
	char slot[16], token[24];
	const bool leased = lock->spec->method->family == ON_SERVER;
	const struct variable variables[] = {
	    {"SEMLOCK_LOCK=", label}, {"SEMLOCK_METHOD=", lock->spec->method->name},
	    {"SEMLOCK_MODE=", mode_text(mode_asked(lock->spec))},
	    {"SEMLOCK_SLOT=", lock->slot < 0                 ? NULL
			      : lock->kernel.slots.count > 1 ? slots_text(lock)
							     : slot},
	    {"SEMLOCK_TOKEN=", !leased || lock->server.token < 0 ? NULL : token},
	    {"SEMLOCK_PASSWORD=", NULL}, /* the helper has read it; the command must not */
	};
	const size_t all = sizeof variables / sizeof *variables - !leased;

	if (lock->slot >= 0)
		snprintf(slot, sizeof slot, "%d", lock->slot);
	if (leased)
		snprintf(token, sizeof token, "%lld", lock->server.token);
	if (set_variables(variables, all) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot set the environment");
	return 0;
}

/* A service manager sets these to the PID of the process that it starts.  That is semlock, but the
 * sockets and the watchdog are meant for the command. */
static const char *const PASSED_ON[] = {"LISTEN_PID=", "WATCHDOG_PID="};
enum { PASSED_ON_COUNT = sizeof PASSED_ON / sizeof *PASSED_ON };

/* Which variable of PASSED_ON is ENTRY, from environ?  Returns its index, or -1: none. */
static int passed_on(const char *entry)
{
	for (int i = 0; i < PASSED_ON_COUNT; i++)
		if (strncmp(entry, PASSED_ON[i], strlen(PASSED_ON[i])) == 0)
			return i;
	return -1;
}

bool command_gets_pids(void)
{
	for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
		if (passed_on(*entry) >= 0)
			return true;
	return false;
}

/* In these variables, put the command's PID in place of SEMLOCK.  Runs in the child, which may
 * share the parent's memory: call nothing that takes a lock in libc. */
static void pass_on_pids(pid_t semlock)
{
	static char texts[PASSED_ON_COUNT][32];
	char digits[16], *at;
	int i;

	for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
		i = passed_on(*entry);
		if (i < 0 || text_number(*entry + strlen(PASSED_ON[i]), INT_MAX) != semlock)
			continue;
		at = digits + sizeof digits;
		*--at = '\0';
		for (long pid = (long)getpid(); pid > 0; pid /= 10)
			*--at = (char)('0' + pid % 10);
		stpcpy(stpcpy(texts[i], PASSED_ON[i]), at);
		*entry = texts[i];
	}
}

/* ---- its process ---- */

/* What the child must know: the command's signal mask, and its parent. */
struct inheritance {
	sigset_t mask;
	pid_t parent;
	int parent_end; /* a pidfd of PARENT; -1: none */
};

static void note_parent(struct inheritance *given)
{
	given->parent = getpid();
	given->parent_end = pidfd_of(given->parent);
}

/* Let the kernel kill this child when semlock dies.  If semlock died before prctl(2), the lock is
 * free and the command must not run.  In a new PID namespace (unshare --pid), a child's getppid(2)
 * is 0: ask the pidfd instead. */
static void tie_to_parent(const struct inheritance *given)
{
	struct pollfd end = {given->parent_end, POLLIN, 0};
	pid_t parent;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	parent = getppid();
	if (parent != given->parent &&
	    (parent != 0 || given->parent_end < 0 || poll(&end, 1, 0) != 0))
		_exit(EXIT_FAILURE);
}

/* A kernel lock's file was opened with or without O_CLOEXEC, as the command needs it: nothing is
 * left to do. */
static bool is_passed_already(const struct lock *lock)
{
	return lock->fd < 0 ||
	       (lock->spec->name != NULL && lock->spec->method->family == OF_KERNEL);
}

/* Returns 0, or -1 with errno set: then the command must not run, because it would not inherit its
 * lock. */
static int pass_descriptors(const struct command *command)
{
	const int flag = (command->policy & INHERITS_LOCKS) != 0 ? 0 : FD_CLOEXEC;

	for (unsigned i = 0; i < command->nlocks; i++)
		if (!is_passed_already(&command->locks[i]) &&
		    fcntl(command->locks[i].fd, F_SETFD, flag) != 0)
			return -1;
	return 0;
}

/* musl's execvp(3) does not run a script without "#!": have the shell find it in PATH and read
 * it. */
static int execute_by_shell(char **argv)
{
	static char shell[] = "/bin/sh", dash_c[] = "-c", run[] = "exec \"$0\" \"$@\"";
	size_t count = 0;
	char **words;

	while (argv[count] != NULL)
		count++;
	words = memory_lasting((count + 4) * sizeof *words);
	if (words == NULL)
		return ENOMEM;
	words[0] = shell;
	words[1] = dash_c;
	words[2] = run;
	memcpy(words + 3, argv, count * sizeof *words);
	execv(shell, words);
	return ENOEXEC;
}

/* Become ARGV.  Returns errno if that fails.  May run in memory shared with the parent
 * (vfork(2)). */
static int command_execute(char **argv)
{
	execvp(argv[0], argv);
	return errno == ENOEXEC ? execute_by_shell(argv) : errno;
}

/* In the child, which may share the parent's memory: change as little as possible before the exec.
 * Returns errno if the command cannot be executed. */
static int exec_in_child(const struct command *command, const struct inheritance *given)
{
	if ((command->policy & LEADS_GROUP) != 0 && setpgid(0, 0) != 0)
		return errno; /* without the group, the limit could not end it */
	if ((command->policy & LEADS_GROUP) == 0 && command->group > 0 &&
	    setpgid(0, command->group) != 0)
		return errno; /* the group is gone: all of it was killed */
	if ((command->policy & DIES_WITH_SEMLOCK) != 0)
		tie_to_parent(given);
	if (pass_descriptors(command) != 0)
		return errno;
	sigprocmask(SIG_SETMASK, &given->mask, NULL);
	if (command->hold == NULL) {
		if (command->semlock != 0)
			pass_on_pids(command->semlock);
		return command_execute(command->argv);
	}
	/* The placeholder has no exec that would close descriptors.  Close those of the locks, and
	 * the start barrier, whose end of file tells semlock that the placeholder runs. */
	for (unsigned i = 0; i < command->nlocks && (command->policy & INHERITS_LOCKS) == 0; i++)
		close(command->locks[i].fd);
	close(command->barrier);
	hold_until_end(command->hold);
}

/* ---- the start barrier ----
 *
 * A lock's record must name the command's process before the lock is taken, but the command must
 * not run before that.  So its process is forked early, and waits for a byte from a socket.  If
 * semlock dies first, or cancels the start, the process reads an end of file. */

/* In the child: wait until semlock lets the child run.  BEFORE: semlock's mask; *MASK becomes the
 * command's.  Calls wakeup_off() first, so that the command gets the signals as semlock found them,
 * not as the timer changed them.  Returns 0, or the errno of a failed wait. */
static int await_release(const struct command *command, const sigset_t *before, sigset_t *mask)
{
	ssize_t got;
	char word;

	sigprocmask(SIG_SETMASK, before, NULL);
	wakeup_off();
	signals_block_all(mask);
	UNINTERRUPTED(got, read(command->barrier, &word, 1));
	if (got != 0)
		return got == 1 ? 0 : errno;
	/* semlock has ended, perhaps by a signal while it waited for the lock: remove what it has
	 * prepared for a lock made of files. */
	for (unsigned i = 0; i < command->nlocks; i++)
		if (command->locks[i].spec->method->family == OF_FILES)
			command->locks[i].spec->method->release(&command->locks[i]);
	_exit(EXIT_FAILURE);
}

pid_t command_prepare(struct command *command, struct error *error)
{
	struct inheritance given = {0};
	int ends[2], failure;
	sigset_t before;
	pid_t pid;

	if ((command->policy & DIES_WITH_SEMLOCK) != 0)
		note_parent(&given);
	if (descriptor_socket_pair(ends) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot start a process");
	signals_block_all(&before);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		command->barrier = ends[1];
		if (command->hold != NULL && command->hold->caller != NULL)
			caller_leave(command->hold->caller, NULL, 0);
		failure = await_release(command, &before, &given.mask);
		if (failure == 0)
			failure = exec_in_child(command, &given);
		write_without_sigpipe(command->barrier, &failure, sizeof failure);
		_exit(EXIT_SYSTEM); /* not 1, which is the status of a busy lock */
	}
	close(ends[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		error_no_process(error);
		close(ends[0]);
		return -1;
	}
	command->state = COMMAND_AT_BARRIER;
	command->pid = pid;
	command->barrier = ends[0];
	CRASH_POINT("start_barrier.started");
	return pid;
}

/* Let the child run, and wait for its exec.  Returns 0, the errno of the exec, or -1 if the child
 * was killed first. */
static int release_prepared(struct command *command)
{
	int errnum = 0;
	ssize_t bytes;
	bool opened;

	command->state = COMMAND_RUNS;
	bytes = write_without_sigpipe(command->barrier, "", 1);
	if (bytes != 1 && errno != EPIPE && errno != ECONNRESET) {
		/* close the socket, or this process and the child would wait for each other */
		errnum = errno;
		close(command->barrier);
		return errnum;
	}
	opened = bytes == 1;
	CRASH_POINT("start_barrier.opened");
	UNINTERRUPTED(bytes, read(command->barrier, &errnum, sizeof errnum));
	/* ECONNRESET: the child was killed before it read the byte */
	if (bytes < 0 && errno != ECONNRESET) {
		errnum = errno;
		if (opened) {
			complain("cannot tell whether the command has started: %s",
			    strerror(errnum));
			errnum = 0;
		}
	} else if (bytes != (ssize_t)sizeof errnum) {
		errnum = opened ? 0 : -1; /* the exec, or a KILL, has closed the socket */
	}
	close(command->barrier);
	return errnum;
}

/* In the child of a vfork(2) that is only fork(2): tell the parent why the exec failed. */
static void send_failure(int failure)
{
	sigqueue(getppid(), SIGCHLD, (union sigval){.sival_int = failure});
}

/* vfork(2) suspends the parent, which shares its memory with the child, until the child has called
 * exec or exit: so the errno of a failed exec needs no pipe.  Where vfork(2) is only fork(2), as
 * under qemu-user and valgrind, the parent goes on at once, in memory of its own, and the errno
 * comes with SIGCHLD. */
pid_t command_start(struct command *command, struct result *result, struct error *error)
{
	struct inheritance given;
	volatile pid_t pid = command->pid;
	volatile bool shared = false;
	volatile int failure = 0;

	if ((command->policy & DIES_WITH_SEMLOCK) != 0)
		note_parent(&given);
	/* From before the fork on, only supervise() receives signals: none is lost, and none ends
	 * semlock before the command. */
	signals_block_all(&given.mask);
	if (command->state == COMMAND_AT_BARRIER) {
		failure = release_prepared(command);
	} else if ((pid = vfork()) == 0) {
		shared = true;
		failure = exec_in_child(command, &given);
		send_failure(failure);
		_exit(EXIT_FAILURE);
	} else
		command->state = shared ? COMMAND_RUNS : COMMAND_EXECS;
	if (pid < 0) {
		command->state = COMMAND_NEW;
		return error_no_process(error);
	}
	command->pid = pid;
	CRASH_POINT("command.started");
	if (failure == 0)
		return pid;
	command->state = COMMAND_ENDED;
	if ((command->policy & NAMED_BY_LOCK) == 0)
		command_reap(command);
	*result = failure < 0 ? (struct result){.how = ENDED_SIGNAL, .code = SIGKILL}
	                      : (struct result){.how = ENDED_NOT_RUN, .code = failure};
	return 0;
}

void command_reap(struct command *command)
{
	if (command->state == COMMAND_AT_BARRIER)
		close(command->barrier);
	else if (command->state != COMMAND_ENDED)
		return;
	while (waitpid(command->pid, NULL, 0) < 0 && errno == EINTR)
		;
	command->state = COMMAND_REAPED;
}

void command_become(const struct command *command)
{
	if (pass_descriptors(command) == 0)
		errno = command_execute(command->argv);
}
