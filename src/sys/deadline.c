/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sys/deadline.h"

#define CENTURY (36525.0 * 86400.0)

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

int64_t clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boottime(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_processor(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static bool apply_suffix(const char *p, double *value)
{
	static const struct {
		char name[sizeof "ms"];
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}, {"d", 86400}};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(p, units[i].name) == 0) {
			*value *= units[i].seconds;
			return true;
		}
	return false;
}

bool duration_parse(const char *text, int64_t *duration)
{
	double value;
	char *end;

	if (text[strcspn(text, "xXnN")] != '\0')
		return false; /* strtod(3) also accepts "0x1", "inf" and "nan" */
	value = strtod(text, &end);
	if (end == text || !apply_suffix(end, &value))
		return false;
	value = value > CENTURY ? CENTURY : value < -CENTURY ? -CENTURY : value;
	*duration = (int64_t)(value * (double)SECOND);
	if (*duration == 0 && value != 0) /* "1e-12" must not become 0: that means not to wait */
		*duration = value > 0 ? 1 : -1;
	return true;
}

struct deadline deadline_after(int64_t duration)
{
	int64_t now = clock_now();
	int64_t at = duration < INT64_MAX - now ? now + duration : INT64_MAX;

	return (struct deadline){.never = false, .at = at};
}

struct deadline deadline_never(void)
{
	return (struct deadline){.never = true, .at = 0};
}

struct deadline deadline_earlier(struct deadline one, struct deadline other)
{
	if (one.never || other.never)
		return one.never ? other : one;
	return one.at < other.at ? one : other;
}

int64_t deadline_left(const struct deadline *deadline)
{
	int64_t left;

	if (deadline->never)
		return INT64_MAX;
	left = deadline->at - clock_now();
	return left > 0 ? left : 0;
}

int deadline_poll_time(const struct deadline *deadline)
{
	int64_t left;

	if (deadline->never)
		return -1;
	left = (deadline_left(deadline) + MILLISECOND - 1) / MILLISECOND;
	return left < INT_MAX ? (int)left : INT_MAX;
}

struct effort effort_begins(void)
{
	return (struct effort){clock_now(), -1};
}

bool effort_exceeds(struct effort *effort, int64_t limit)
{
	if (effort->used >= 0)
		return clock_processor() - effort->used > limit;
	if (clock_now() - effort->began > limit)
		effort->used = clock_processor();
	return false;
}

struct allowance allowance_begins(int64_t budget, struct deadline deadline)
{
	return (struct allowance){budget, deadline, effort_begins()};
}

bool allowance_spent(struct allowance *limit)
{
	return deadline_left(&limit->deadline) == 0 ||
	       (limit->budget > 0 && effort_exceeds(&limit->effort, limit->budget));
}
