/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_fill(struct failure *failure, int status, bool away, const char *format, ...)
{
	va_list args;

	failure->status = status;
	failure->away = away;
	va_start(args, format);
	vsnprintf(failure->text, sizeof failure->text, format, args);
	va_end(args);
	failure_clean(failure->text);
	return -1;
}

void failure_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
}
