/* locksmith/common/clock.h - the clock that leases are measured on, and a little randomness for polling. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_CLOCK_H
#define SEMLOCK_LOCKSMITH_COMMON_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NEVER INT64_MAX

/* A hundred days: nothing that takes longer makes sense, a lease least of all. */
#define LONGEST_SECONDS 8640000

/* Nanoseconds of BOOTTIME: it runs on while the machine is suspended, as a lease does. */
int64_t boottime_now(void);

/* The earlier of two moments. */
int64_t clock_min(int64_t a, int64_t b);

/* A random duration from three quarters to five quarters of ns, so that pollers do not march in
 * step. */
int64_t clock_jitter(int64_t ns);

/* Fills size bytes at into with random bytes that other hosts and processes do not draw too. */
void clock_random(void *into, size_t size);

/* Reads seconds ("90", ".5", "1e1"), at most LONGEST_SECONDS, into *ns. 0, or -1 if it is no such
 * number. */
int clock_parse(const char *text, int64_t *ns);

#endif
