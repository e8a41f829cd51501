/* locksmith/etcd/base64.h - keys and values as etcd's JSON gateway takes and sends them. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_BASE64_H
#define SEMLOCK_LOCKSMITH_ETCD_BASE64_H

#include <stddef.h>

/* Room for the encoding of n bytes. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)

/* Writes the encoding of text into out, which has room for BASE64_SIZE(strlen(text)). */
void base64_encode(const char *text, char *out);

/* Decodes text into out as a string, cut off to fit size. 0, or -1: text is no base64. */
int base64_decode(const char *text, char *out, size_t size);

#endif
