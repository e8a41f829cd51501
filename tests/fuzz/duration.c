/* SPDX-License-Identifier: MIT */
/* Durations: at most a century, negative only with a sign, equal to the value of the digits; a
 * refused text leaves the variable alone. */
#include <config.h>

#include "sys/deadline.h"
#include "fuzz.h"

#define LONGEST (INT64_C(36525) * 86400 * SECOND)
#define UNTOUCHED INT64_C(-4711)

/* strtod(3) knows plain decimals: digits, one point, an exponent. */
static void compare_with_libc(const char *text, int64_t duration)
{
	char *end;
	double libc = strtod(text, &end);
	double ours = (double)duration / (double)SECOND, difference = libc - ours;

	/* Digits beyond the range of a double's exponent are no duration. */
	if (strlen(text) > 290 || *end != '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
		return;
	if (difference < 0)
		difference = -difference;
	if (libc < 36525.0 * 86400 && libc > -36525.0 * 86400)
		MUST(difference <= 2e-9 + (libc < 0 ? -libc : libc) * 1e-9);
	else
		MUST(duration == LONGEST || duration == -LONGEST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	int64_t duration = UNTOUCHED;
	struct deadline deadline;

	if (duration_parse(text, &duration)) {
		MUST(duration <= LONGEST && duration >= -LONGEST);
		const char *number = text + strspn(text, " \t\n\v\f\r");

		MUST(number[strcspn(number, " \t\nxXnNpP")] == '\0'); /* "0x1", "inf", "1 " */
		MUST(*number == '-' ? duration <= 0 : duration >= 0);
		compare_with_libc(text, duration);
		deadline = deadline_after(duration < 0 ? 0 : duration);
		MUST(deadline_left(&deadline) <= LONGEST);
	} else {
		MUST(duration == UNTOUCHED);
	}
	free(text);
	return 0;
}
