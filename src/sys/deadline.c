#include <config.h>

#include <stddef.h>
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

static const char *read_digits(const char *p, double *value, int *count, double *scale)
{
	for (; *p >= '0' && *p <= '9'; p++, ++*count) {
		*value = *value * 10 + (*p - '0');
		*scale *= 10;
	}
	return p;
}

/* "e5", "E-3", in at most 700 steps: more than a double's range. */
static const char *read_exponent(const char *p, double *value)
{
	const char *start = p;
	double power = 0, unused = 1;
	bool negative;
	int count = 0;

	if (*p != 'e' && *p != 'E')
		return p;
	p++;
	negative = *p == '-';
	if (*p == '-' || *p == '+')
		p++;
	p = read_digits(p, &power, &count, &unused);
	if (count == 0)
		return start;
	for (int i = 0; i < 700 && i < power; i++)
		*value = negative ? *value / 10 : *value * 10;
	return p;
}

static bool apply_suffix(const char *p, double *value)
{
	static const struct {
		const char *name;
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
	double value = 0, fraction = 0, scale = 1, unused = 1;
	bool negative = *text == '-';
	int count = 0;
	const char *p = *text == '-' || *text == '+' ? text + 1 : text;

	p = read_digits(p, &value, &count, &unused);
	if (*p == '.')
		p = read_digits(p + 1, &fraction, &count, &scale);
	if (count == 0)
		return false;
	if (scale < 1e300)
		value += fraction / scale;
	p = read_exponent(p, &value);
	if (!apply_suffix(p, &value))
		return false;
	if (value > CENTURY)
		value = CENTURY;
	*duration = (int64_t)(value * (double)SECOND);
	if (*duration == 0 && value > 0)
		*duration = 1; /* "1e-12" is not 0, which means not to wait */
	if (negative)
		*duration = -*duration;
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

int64_t deadline_left(const struct deadline *deadline)
{
	int64_t left;

	if (deadline->never)
		return INT64_MAX;
	left = deadline->at - clock_now();
	return left > 0 ? left : 0;
}
