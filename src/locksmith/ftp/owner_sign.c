/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/ftp/owner_sign.h"

#include "locksmith/common/loop.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

static void this_host(char *host, size_t size)
{
	if (gethostname(host, size) != 0)
		host[0] = '\0';
	host[size - 1] = '\0';
	for (unsigned char *p = (unsigned char *)host; *p != '\0'; p++)
		*p = isalnum(*p) || *p == '.' || *p == '-' ? (unsigned char)tolower(*p) : '-';
	if (host[0] == '\0')
		strcpy(host, "unknown");
}

void sign_name(struct owner_sign *t)
{
	snprintf(t->name, sizeof t->name, "sl1.x.%u.%lu.%s.%ld.%s", t->ttl, t->beat, t->nonce, t->pid, t->host);
}

void sign_make(struct owner_sign *t, unsigned int ttl, long pid)
{
	uint64_t random_bits;

	*t = (struct owner_sign){.ttl = ttl, .pid = pid};
	random_bytes(&random_bits, sizeof random_bits);
	snprintf(t->nonce, sizeof t->nonce, "%016" PRIx64, random_bits);
	this_host(t->host, sizeof t->host);
	sign_name(t);
}

/* A name is a sign's if its fields make the same name. */
bool sign_parse(const char *name, struct owner_sign *t)
{
	*t = (struct owner_sign){.ttl = 0};
	/* The name becomes part of FTP commands: allow no other characters. */
	if (strncasecmp(name, "sl1.x.", 6) != 0 ||
	    sscanf(name + 6, "%u.%lu.%16[0-9a-fA-F].%ld.%64[" HOST_CHARS "]", &t->ttl, &t->beat, t->nonce, &t->pid,
		t->host) != 5)
		return false;
	sign_name(t);
	if (strlen(t->nonce) != 16 || t->ttl > LONGEST_SECONDS || t->pid < 0 || t->pid > INT32_MAX ||
	    strcasecmp(t->name, name) != 0)
		return false;
	strcpy(t->name, name);
	return true;
}
