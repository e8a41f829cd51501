#include <config.h>

#include "locksmith/ftp/owner_token.h"

#include "locksmith/common/clock.h"

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

void token_name(struct owner_token *t)
{
	char mode[16] = {t->mode, '\0'};

	if (t->mode == 'n')
		snprintf(mode, sizeof mode, "n%u", t->slot);
	snprintf(t->name, sizeof t->name, "sl1.%s.%u.%lu.%s.%ld.%s", mode, t->ttl, t->beat,
	    t->nonce, t->pid, t->host);
}

void token_make(struct owner_token *t, char mode, unsigned int slot, unsigned int ttl, long pid)
{
	uint64_t random_bits;

	*t = (struct owner_token){.mode = mode, .slot = slot, .ttl = ttl, .pid = pid};
	clock_random(&random_bits, sizeof random_bits);
	snprintf(t->nonce, sizeof t->nonce, "%016" PRIx64, random_bits);
	this_host(t->host, sizeof t->host);
	token_name(t);
}

/* Reads digits up to the next dot and moves *p behind it. */
static bool number_field(const char **p, unsigned long most, unsigned long *value)
{
	const char *start = *p;

	*value = 0;
	while (isdigit((unsigned char)**p) && *p - start < 12)
		*value = *value * 10 + (unsigned long)(*(*p)++ - '0');
	if (*p == start || **p != '.' || *value > most)
		return false;
	(*p)++;
	return true;
}

static bool mode_field(const char **p, struct owner_token *t)
{
	unsigned long slot = 0;

	t->mode = (char)tolower((unsigned char)*(*p)++);
	t->slot = 0;
	if (t->mode == 'n') {
		if (!number_field(p, 99999, &slot))
			return false;
		t->slot = (unsigned int)slot;
		return true;
	}
	return (t->mode == 'x' || t->mode == 's') && *(*p)++ == '.';
}

static bool nonce_field(const char **p, struct owner_token *t)
{
	for (int i = 0; i < 16; i++, (*p)++) {
		if (!isxdigit((unsigned char)**p))
			return false;
		t->nonce[i] = (char)tolower((unsigned char)**p);
	}
	t->nonce[16] = '\0';
	return *(*p)++ == '.';
}

bool token_parse(const char *name, struct owner_token *t)
{
	const char *p = name + 4;
	unsigned long ttl, pid;

	if (strncasecmp(name, "sl1.", 4) != 0 || *p == '\0' || strlen(name) >= sizeof t->name)
		return false;
	if (!mode_field(&p, t) || !number_field(&p, LONGEST_SECONDS, &ttl) ||
	    !number_field(&p, 999999999999, &t->beat) || !nonce_field(&p, t) ||
	    !number_field(&p, INT32_MAX, &pid))
		return false;
	/* The name becomes part of FTP commands: allow no other characters. */
	if (*p == '\0' || strlen(p) >= sizeof t->host || p[strspn(p, HOST_CHARS)] != '\0')
		return false;
	t->ttl = (unsigned int)ttl;
	t->pid = (long)pid;
	snprintf(t->host, sizeof t->host, "%s", p);
	strcpy(t->name, name);
	return true;
}
