/* SPDX-License-Identifier: MIT */
/* probe-timer.c - prints the time limit that a program sets itself, read from its system call,
 * so that "-w 1d" can be tested in less than a day. */
#include <config.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"
#include "syscalls.h"

/* Where in PID a struct with the first expiry lies, for the calls that start a timer; else 0. */
static unsigned long timer_argument(const struct __ptrace_syscall_info *call)
{
	if (call->op != PTRACE_SYSCALL_INFO_ENTRY)
		return 0;
	if (call->entry.nr == SYS_setitimer)
		return (unsigned long)call->entry.args[1];
	if (call->entry.nr == SYS_timer_settime || call->entry.nr == SYS_timerfd_settime)
		return (unsigned long)call->entry.args[2];
	return 0;
}

/* Both itimerval and itimerspec are { interval, first expiry } of two longs each.  A
 * timer that is being disarmed counts as 0. */
static int read_limit(pid_t pid, const struct __ptrace_syscall_info *call, double *seconds)
{
	unsigned long at = timer_argument(call);
	long t[4];
	struct iovec local = {t, sizeof t}, remote = {(void *)at, sizeof t};

	if (at == 0 || process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof t)
		return 0;
	*seconds = (double)t[2] + (double)t[3] / (call->entry.nr == SYS_setitimer ? 1e6 : 1e9);
	if (call->entry.nr != SYS_setitimer && (call->entry.args[1] & TIMER_ABSTIME))
		*seconds -= (double)now_ms() / 1e3;
	return t[2] != 0 || t[3] != 0;
}

/* timer COMMAND...: prints the seconds of the first timer that COMMAND starts, and kills
 * COMMAND. */
int cmd_timer(int argc, char **argv)
{
	struct __ptrace_syscall_info call;
	double seconds;
	int status;
	pid_t pid;

	if (argc < 2)
		misuse("timer COMMAND...");
	alarm(PATIENCE_MS / 1000);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		become(argv + 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		fail("cannot trace", argv[1]);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	for (;;) {
		int pass =
		    WSTOPSIG(status) & 0x80 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)pass) != 0 ||
		    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		memset(&call, 0, sizeof call);
		if (WSTOPSIG(status) & 0x80 &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof call, &call) > 0 &&
		    read_limit(pid, &call, &seconds)) {
			printf("%.6f\n", seconds);
			kill(pid, SIGKILL);
			while (waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status))
				/* its ticket ends with it: the next process must not find that
				 * ticket */
				;
			return 0;
		}
	}
	fprintf(stderr, "probe: %s ended without starting a timer\n", argv[1]);
	return 1;
}

/* The call that a helper (src/locksmith/common/loop.c) sleeps in: its last two descriptors are its
 * own, and the very last one is its timer. */
struct sleep {
	bool polls;    /* the call is poll(2) */
	bool idle;     /* it waits for no answer: it has no other descriptors */
	bool complete; /* the time is up */
};

static struct sleep sleep_of(pid_t pid, const struct __ptrace_syscall_info *call)
{
	static unsigned long fds, count; /* of the call that was entered last; none: 0 */
	struct sleep sleep = {.polls = false};
	struct pollfd timer;
	struct iovec local = {&timer, sizeof timer}, remote = {NULL, sizeof timer};

	if (call->op == PTRACE_SYSCALL_INFO_ENTRY) {
		count = is_poll((long)call->entry.nr) ? (unsigned long)call->entry.args[1] : 0;
		fds = (unsigned long)call->entry.args[0];
	}
	sleep.polls = count >= 2;
	sleep.idle = count == 2;
	if (call->op != PTRACE_SYSCALL_INFO_EXIT || !sleep.polls)
		return sleep;
	remote.iov_base = (void *)(fds + (count - 1) * sizeof timer);
	sleep.complete = call->exit.rval > 0 &&
	                 process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof timer &&
	                 (timer.revents & POLLIN) != 0;
	return sleep;
}

/* A helper's times are of CLOCK_BOOTTIME, which is ahead of now_ms() by the time of suspensions. */
static double suspended(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)now_ms() / 1e3;
}

/* pauses PID COUNT: prints COUNT lines, each with the seconds for which the helper PID sleeps
 * between two looks, and with the clock (CLOCK_MONOTONIC).  A time is printed when a sleep without
 * other descriptors begins, or when one beside a connection has ended because the time was up: the
 * time limit of an answer that comes is none. */
int cmd_pauses(int argc, char **argv)
{
	struct __ptrace_syscall_info call;
	double armed = 0;
	long left;
	int status;
	pid_t pid;

	if (argc != 3)
		misuse("pauses PID COUNT");
	pid = (pid_t)number(argv[1]);
	left = number(argv[2]);
	alarm(5 * PATIENCE_MS / 1000);
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0 ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0)
		fail("cannot trace", argv[1]);
	while (left > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		bool syscall_stop = WSTOPSIG(status) == (SIGTRAP | 0x80);
		bool signal_stop = !syscall_stop && status >> 16 == 0;

		memset(&call, 0, sizeof call);
		if (syscall_stop &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof call, &call) > 0) {
			struct sleep sleep = sleep_of(pid, &call);
			bool begins = call.op == PTRACE_SYSCALL_INFO_ENTRY && sleep.idle;

			read_limit(pid, &call, &armed);
			if (armed > 0 && (begins || (sleep.complete && !sleep.idle))) {
				printf("%.3f %.3f\n", armed - suspended(), (double)now_ms() / 1e3);
				fflush(stdout);
				left--;
				armed = 0;
			}
		}
		if (ptrace(left > 0 ? PTRACE_SYSCALL : PTRACE_DETACH, pid, NULL,
			(void *)(long)(signal_stop ? WSTOPSIG(status) : 0)) != 0)
			break;
	}
	if (left == 0)
		return 0;
	fprintf(stderr, "probe: process %s has ended, and has not slept so often\n", argv[1]);
	return 1;
}

/* pause MS: for a test of time itself. */
int cmd_pause(int argc, char **argv)
{
	if (argc != 2)
		misuse("pause MS");
	pause_ms(number(argv[1]));
	return 0;
}
