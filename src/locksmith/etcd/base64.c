#include <config.h>

#include "locksmith/etcd/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const char *text, char *out)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i += 3) {
		unsigned int v = (unsigned int)s[i] << 16;

		v |= i + 1 < n ? (unsigned int)s[i + 1] << 8 : 0;
		v |= i + 2 < n ? s[i + 2] : 0;
		*out++ = digits[v >> 18];
		*out++ = digits[v >> 12 & 63];
		*out++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digits[v & 63] : '=';
	}
	*out = '\0';
}

int base64_decode(const char *text, char *out, size_t size)
{
	unsigned int v = 0, bits = 0;
	size_t used = 0;

	for (; *text != '\0' && *text != '='; text++) {
		const char *at = strchr(digits, *text);

		if (at == NULL)
			return -1;
		v = (v << 6 | (unsigned int)(at - digits)) & 0xffffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (used + 1 < size)
			out[used++] = (char)(v >> bits & 0xff);
	}
	out[used] = '\0';
	return 0;
}
