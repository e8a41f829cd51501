/* locksmith/postgresql/pglock.h - a lock that is a row in a PostgreSQL database, and the calls about it.

     semlock.held (name, token, mode, slot, until, holder)    a row for each holder
     an advisory lock on the name's hash                       the queue

   A session that wants the lock takes the advisory lock, which the server hands on first come, first served.
   The first in the queue looks for rows that conflict with its mode, adds its own row when there is none, and
   lets the next one come. The rules, each with what a crash leaves behind:

   1. A row is added only with the advisory lock held, and the advisory lock is released only after the row is
      committed. So no two sessions look at the same time. A session that ends (crash, cut connection) loses the
      advisory lock in the server, after its last statement: nothing is left.
   2. The row excludes as long as it is there, not as long as its session is: if the helper is killed, the
      session ends at once, but the command may run on. Left behind: the row, until its time has passed.
   3. Only a row whose time has passed (column until, the server's clock) may be removed by another session. Such
      rows are deleted first; after that every row that is left counts, without a look at its time. If the holder
      renews the row meanwhile, one of DELETE and UPDATE waits for the other, and sees what it did.
   4. The holder counts its deadline from when it sent the statement, the server from when it ran it: the
      command is ended before another session may remove the row.
   5. The session that added the row is the only one that renews it. When the session ends the lock is lost.

   The token is an identity column, which only rises. tests/models/postgresql.py has these rules. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_PGLOCK_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_PGLOCK_H

#include "locksmith/common/options.h"
#include "locksmith/common/failure.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

struct pglock {
	const struct options *options;
	PGconn *db;
	char name[600];
	char key[24];	 /* the advisory lock, in decimal */
	char lease[32];	 /* ttl as SQL's interval */
	char who[400];	 /* one of the holders in the way, as in a WAIT line */
	char fencing_token[24];	 /* of our row; "" if there is none */
	int slot;	 /* -1: none */
	int64_t ttl;	 /* nanoseconds, as all times here */
	int64_t deadline; /* our row stays at least until then */
	bool acquiring;	 /* end of input breaks a statement off */
	bool listening;	 /* releases are heard of */
	bool warned;	 /* the server had a warning about the last statement */
	char state[6];	 /* SQLSTATE of the last error, "" if the server did not send one */
	struct failure failure;
};

/* connect.c: the URL behind "SCHEME://". 0, or -1 with *failure filled. */
int pg_parse(const char *text, struct url *url, struct failure *failure);

/* connect.c: opens a session that no pooler shares. 0, or -1 with k->failure filled. */
int pg_open(struct pglock *k, int64_t until);

/* The moment until which an answer is waited for. */
int64_t pg_answer_by(const struct pglock *k);

/* statement.c: the result of one statement with N values, or, with N < 0, the last of several without. NULL
   with k->failure filled: an error; no answer before UNTIL; the session has ended (PQstatus tells); or, with
   k->acquiring, the end of input. A result with a warning is an error as well. */
PGresult *pg_ask(
    struct pglock *k, int64_t until, const char *sql, int n, const char *const *values);

#define PG_ASK(k, until, sql, ...)                                                                 \
	pg_ask(k, until, sql, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),       \
	    (const char *[]){__VA_ARGS__})

/* statement.c: waits until the server says something, or until the moment given. 0, or -1 with k->failure filled: the
   session has ended. */
int pg_wait(struct pglock *k, int64_t until);

/* statement.c: fills k->failure from what the server or libpq says. Returns -1. */
int pg_failed(struct pglock *k, const char *message);

/* table.c: adds our row if no row conflicts: 1. 0: one does. -1: k->failure is filled. */
int pg_enter(struct pglock *k, int64_t until);

/* table.c: removes the rows whose time has passed. How many, or -1. */
int pg_expire(struct pglock *k, int64_t until);

/* table.c: fills k->who with a row that conflicts, and *lapses with the moment at which its time will have passed. 1, or 0:
   there is none; or -1. */
int pg_look(struct pglock *k, int64_t until, int64_t *lapses);

/* table.c: prolongs our row. 1, or 0: it is not there any more; or -1. */
int pg_renew(struct pglock *k, int64_t until);

/* table.c: removes our row and wakes the first waiter. 1, or 0: it was not there any more; or -1. */
int pg_remove(struct pglock *k, int64_t until);

/* acquire.c: EXIT_RELEASED with k->token set when held, or the status to end with. */
int pg_acquire(struct pglock *k);

/* hold.c: keeps the lock until it is to be let go or is lost. The exit status. */
int pg_hold(struct pglock *k);

/* hold.c: removes our row, over a new session if need be. The exit status. */
int pg_release(struct pglock *k);

/* look.c: --who and --check. */
int pg_who(struct pglock *k);
int pg_check(struct pglock *k);

#endif
