/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/conninfo.h - libpq's connection settings, from the lock's URL and the
 * environment. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_CONNINFO_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_CONNINFO_H

#include <libpq-fe.h>
#include <stddef.h>

#include "locksmith/common/options.h"
#include "locksmith/common/url.h"
#include "report/error.h"

/* Parse the URL TEXT, "SCHEME://[USER@][HOST[:PORT][,...]]/NAME[?KEYWORD=VALUE&...]": one of
 * libpq's, but with the lock's name in place of the database's, which is ?dbname=.  URL gets the
 * name as its path.  Returns 0, or -1 with ERROR filled. */
int conninfo_parse(const char *text, struct url *url, struct error *error);

/* How many hosts the URL names, at least 1. */
unsigned int conninfo_hosts(void);

/* Begin to connect to the I-th host, from 0; SESSION is the session's name unless the URL or the
 * environment has one.  Returns false if the URL has fewer hosts; else *DB is what libpq returns,
 * NULL if it has no memory.  The call blocks while libpq waits for the resolver. */
bool conninfo_connect(unsigned int i, const char *session, PGconn **db);

/* Begin to connect to the address at which a session with the I-th host was reached before, without
 * the resolver.  Returns false if none is remembered. */
bool conninfo_connect_again(unsigned int i, const char *session, PGconn **db);

/* Remember where DB, a session, has reached the I-th host; NULL: forget it. */
void conninfo_remember(unsigned int i, const PGconn *db);

/* Put "semlock NAME WHAT", the name of a session, into TEXT (SIZE bytes): in ASCII, and cut as
 * PostgreSQL does; "" if the user has set a name. */
void conninfo_application(const struct options *options, const char *what, char *text, size_t size);

#endif
