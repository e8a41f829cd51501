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

/* Parse TEXT, "SCHEME://[USER@][HOST[:PORT][,...]]/NAME[?KEYWORD=VALUE&...]".  This is a URL of
 * libpq's, but NAME is the lock's name; the database's is ?dbname=.  Puts the lock's name into
 * url->path.  Returns 0, or -1 with ERROR filled. */
int conninfo_parse(const char *text, struct url *url, struct error *error);

/* How many hosts the URL names, at least 1. */
unsigned int conninfo_hosts(void);

/* Begin to connect to the I-th host, counted from 0.  SESSION is the session's name, unless the URL
 * or the environment has one.  Returns false if the URL has fewer hosts; else *DB is what libpq
 * returns, NULL if it has no memory.  The call blocks while libpq waits for the resolver. */
bool conninfo_connect(unsigned int i, const char *session, PGconn **db);

/* Like conninfo_connect(), but without the resolver: connect to the address at which an earlier
 * session reached the I-th host.  Returns false if no address is remembered. */
bool conninfo_connect_again(unsigned int i, const char *session, PGconn **db);

/* Remember the address at which the session DB has reached the I-th host.  DB NULL: forget the
 * address. */
void conninfo_remember(unsigned int i, const PGconn *db);

/* Put "semlock NAME WHAT", the name of a session, into TEXT (SIZE bytes): in ASCII, with NAME cut
 * so that PostgreSQL cuts nothing; "" if the user has set a name. */
void conninfo_application(const struct options *options, const char *what, char *text, size_t size);

#endif
