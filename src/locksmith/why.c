#include <config.h>

#include "locksmith/why.h"

#include <stdarg.h>
#include <stdio.h>

int why_set(struct why *why, int status, const char *format, ...)
{
	va_list args;

	why->status = status;
	va_start(args, format);
	vsnprintf(why->text, sizeof why->text, format, args);
	va_end(args);
	why_clean(why->text);
	return -1;
}

void why_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
}
