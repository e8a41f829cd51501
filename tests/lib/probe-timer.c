/* SPDX-License-Identifier: MIT */
/* probe-timer.c - prints the time limit that a program sets itself, read from its system call,
 * so that "-w 1d" can be tested in less than a day. */
#include <config.h>
#include <errno.h>
#include <signal.h>
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

/* pause MS: for a test of time itself. */
int cmd_pause(int argc, char **argv)
{
	if (argc != 2)
		misuse("pause MS");
	pause_ms(number(argv[1]));
	return 0;
}
