#include <config.h>

#include "locksmith/common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

int64_t clock_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t clock_jitter(int64_t ns)
{
	uint32_t random_bits;

	clock_random(&random_bits, sizeof random_bits);
	return ns - ns / 4 + (int64_t)((double)ns / 2 * ((double)random_bits / UINT32_MAX));
}

void clock_random(void *into, size_t size)
{
	/* At most 256 bytes are given whole; EINTR: before the kernel has them. */
	while (getrandom(into, size, 0) != (ssize_t)size)
		if (errno != EINTR)
			abort(); /* a nonce that is not random could match another owner's */
}

int clock_parse(const char *text, int64_t *ns)
{
	char *end;
	double seconds;

	errno = 0;
	seconds = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0)
		return -1;
	if (!(seconds >= 0 && seconds <= LONGEST_SECONDS))
		return -1;
	*ns = (int64_t)(seconds * 1e9);
	return 0;
}
