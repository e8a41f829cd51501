#include <config.h>

#include "locksmith/common/failure.h"

#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 3, 0))) failure_fill(struct failure *failure, int status,
    const char *format, va_list args)
{
	failure->status = status;
	failure->away = false;
	vsnprintf(failure->text, sizeof failure->text, format, args);
	failure_clean(failure->text);
}

int failure_set(struct failure *failure, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	failure_fill(failure, status, format, args);
	va_end(args);
	return -1;
}

int failure_away(struct failure *failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	failure_fill(failure, EXIT_UNAVAILABLE, format, args);
	va_end(args);
	failure->away = true;
	return -1;
}

void failure_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
}
