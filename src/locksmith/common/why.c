#include <config.h>

#include "locksmith/common/why.h"

#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 3, 0))) fill(struct why *why, int status,
    const char *format, va_list args)
{
	why->status = status;
	why->away = false;
	vsnprintf(why->text, sizeof why->text, format, args);
	why_clean(why->text);
}

int why_set(struct why *why, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(why, status, format, args);
	va_end(args);
	return -1;
}

int why_away(struct why *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(why, EXIT_UNAVAILABLE, format, args);
	va_end(args);
	why->away = true;
	return -1;
}

void why_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
}
