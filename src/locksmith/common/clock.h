/* SPDX-License-Identifier: MIT */
/* locksmith/common/clock.h - times on the clock of the leases, which is clock_boottime(), and random numbers. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_CLOCK_H
#define SEMLOCK_LOCKSMITH_COMMON_CLOCK_H

#include "sys/deadline.h"

#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NEVER INT64_MAX

/* A hundred days: the longest time that an option takes. */
#define LONGEST_SECONDS 8640000

/* The earlier of two moments. */
int64_t clock_min(int64_t a, int64_t b);

/* A random time from 3/4 to 5/4 of ns: several pollers spread. */
int64_t clock_jitter(int64_t ns);

/* Fills size bytes, at most 256, at into with random bytes of the kernel; aborts if there are none. */
void clock_random(void *into, size_t size);

/* Reads a duration, as duration_parse() does, of at most LONGEST_SECONDS, into *ns. 0, or -1: text is none. */
int clock_parse(const char *text, int64_t *ns);

#endif
