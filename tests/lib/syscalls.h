/* SPDX-License-Identifier: MIT */
/* syscalls.h - system calls by number, as /proc/PID/syscall shows them.
 *
 * On 32 bits one call has several numbers: fcntl64 beside fcntl, and a *_time64 beside each call
 * that takes a time. */
#ifndef SEMLOCK_TEST_SYSCALLS_H
#define SEMLOCK_TEST_SYSCALLS_H

#include <stdbool.h>
#include <sys/syscall.h>

static inline bool is_fcntl(long call)
{
#ifdef SYS_fcntl64
	if (call == SYS_fcntl64)
		return true;
#endif
	return call == SYS_fcntl;
}

static inline bool is_futex(long call)
{
#ifdef SYS_futex_time64
	if (call == SYS_futex_time64)
		return true;
#endif
#ifdef SYS_futex
	return call == SYS_futex;
#else
	return false;
#endif
}

static inline bool is_sleep(long call)
{
#ifdef SYS_clock_nanosleep_time64
	if (call == SYS_clock_nanosleep_time64)
		return true;
#endif
#ifdef SYS_clock_nanosleep
	if (call == SYS_clock_nanosleep)
		return true;
#endif
#ifdef SYS_nanosleep
	return call == SYS_nanosleep;
#else
	return false;
#endif
}

/* True for poll(2), or ppoll(2) on an architecture without poll(2). */
static inline bool is_poll(long call)
{
#ifdef SYS_poll
	if (call == SYS_poll)
		return true;
#endif
#ifdef SYS_ppoll_time64
	if (call == SYS_ppoll_time64)
		return true;
#endif
#ifdef SYS_ppoll
	return call == SYS_ppoll;
#else
	return false;
#endif
}

#endif
