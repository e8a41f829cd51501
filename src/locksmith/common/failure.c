#include <config.h>

#include "locksmith/common/failure.h"

#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 2, 0))) set_text(struct failure *failure,
    const char *format, va_list args)
{
	vsnprintf(failure->text, sizeof failure->text, format, args);
	failure_clean(failure->text);
}

int failure_set(struct failure *failure, int status, const char *format, ...)
{
	va_list args;

	failure->status = status;
	failure->away = false;
	va_start(args, format);
	set_text(failure, format, args);
	va_end(args);
	return -1;
}

int failure_away(struct failure *failure, const char *format, ...)
{
	va_list args;

	failure->status = EXIT_UNAVAILABLE;
	failure->away = true;
	va_start(args, format);
	set_text(failure, format, args);
	va_end(args);
	return -1;
}

void failure_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
}
