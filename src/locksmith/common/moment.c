/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/moment.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

int64_t spread(int64_t ns)
{
	uint32_t random_bits;

	random_bytes(&random_bits, sizeof random_bits);
	return ns - ns / 4 + (int64_t)((double)ns / 2 * ((double)random_bits / UINT32_MAX));
}

void random_bytes(void *into, size_t size)
{
	/* At most 256 bytes are given whole; EINTR: before the kernel has them. */
	while (getrandom(into, size, 0) != (ssize_t)size)
		if (errno != EINTR)
			abort(); /* a nonce that is not random could match another owner's */
}

int bounded_duration(const char *text, int64_t *ns)
{
	return duration_parse(text, ns) && *ns >= 0 && *ns <= LONGEST_SECONDS * SECOND ? 0 : -1;
}
