/* SPDX-License-Identifier: MIT */
/* locksmith/common/moment.h - moments on the clock of the leases, clock_boottime(), and random numbers, which spread them. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_MOMENT_H
#define SEMLOCK_LOCKSMITH_COMMON_MOMENT_H

#include "sys/deadline.h"

#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

/* A hundred days: the longest time that an option takes. */
#define LONGEST_SECONDS 8640000

/* The earlier of two moments, or the shorter of two times. */
static inline int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A random time from 3/4 to 5/4 of NS: several pollers spread. */
int64_t spread(int64_t ns);

/* Fills SIZE bytes, at most 256, at INTO with random bytes of the kernel; aborts if there are none. */
void random_bytes(void *into, size_t size);

/* Reads a duration, as duration_parse() does, of at most LONGEST_SECONDS, into *NS. 0, or -1: TEXT is none. */
int bounded_duration(const char *text, int64_t *ns);

#endif
