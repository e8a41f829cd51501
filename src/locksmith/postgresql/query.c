/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/options.h"
#include "locksmith/postgresql/conninfo.h"
#include "locksmith/postgresql/query.h"
#include "sys/deadline.h"

/* No setting of the user, the database or the server may end a query early.  Nor may a row security
 * policy hide a row: with row_security off, the server refuses the query instead. */
static const char settings[] = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"
			       " SET LOCAL search_path TO pg_catalog, pg_temp;"
			       " SET LOCAL statement_timeout TO '5s';"
			       " SET LOCAL row_security TO off;"
			       " SET LOCAL client_min_messages TO warning";

static const char settings_of_17[] = "; SET LOCAL transaction_timeout TO 0";

__attribute__((format(printf, 2, 3))) static void add(struct pg_query *query, const char *format,
    ...)
{
	size_t room = sizeof query->text - query->length;
	va_list values;
	int added;

	va_start(values, format);
	added = vsnprintf(query->text + query->length, room, format, values);
	va_end(values);
	if (added < 0 || (size_t)added >= room)
		abort();
	query->length += (size_t)added;
}

/* Put TEXT as a literal into INTO (SIZE bytes).  Returns 0, or -1: it is not valid in the
 * session's encoding, UTF-8. */
static int literal(const struct pg_lock *lock, const char *text, char *into, size_t size)
{
	char *escaped = PQescapeLiteral(lock->db, text, strlen(text));
	int length;

	if (escaped == NULL)
		return -1;
	length = snprintf(into, size, "%s", escaped);
	PQfreemem(escaped);
	if (length < 0 || (size_t)length >= size)
		abort();
	return 0;
}

static void keep_ascii(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p >= 0x80)
			*p = '?';
}

/* Put the session's name into INTO as a literal; NULL if the user has set a name. */
static void name_session(const struct pg_lock *lock, const char *what, char *into, size_t size)
{
	char text[64];

	conninfo_application(lock->options, what, text, sizeof text);
	if (text[0] == '\0' || literal(lock, text, into, size) != 0)
		snprintf(into, size, "NULL");
}

/* Return how many ms a query may wait for another session's database lock: the answer should come
 * before UNTIL. */
static int64_t lock_timeout(int64_t until)
{
	int64_t most = earlier(2 * SECOND, (until - clock_boottime()) / 4 * 3) / MILLISECOND;

	return most > 100 ? most : 100;
}

int query_begin(struct pg_lock *lock, const char *commit, int64_t until)
{
	struct pg_query *query = &lock->query;
	char client[400];

	options_holder(lock->options, client, sizeof client);
	if (lock->ascii_client)
		keep_ascii(client);
	if (literal(lock, client, query->client, sizeof query->client) != 0) {
		/* A command's name may be in any encoding, or cut within a character. */
		keep_ascii(client);
		literal(lock, client, query->client, sizeof query->client);
	}
	if (literal(lock, lock->options->url.path, query->name, sizeof query->name) != 0)
		return error_plain(&lock->error, ERROR_USAGE,
		    "the lock's name must be UTF-8 (%%C3%%A4, not %%E4)");
	name_session(lock, "waits", query->waits, sizeof query->waits);
	name_session(lock, "holds", query->holds, sizeof query->holds);
	query->length = 0;
	add(query,
	    "%s%s; SET LOCAL lock_timeout TO %" PRId64 "; SET LOCAL synchronous_commit TO %s",
	    settings, PQserverVersion(lock->db) >= 170000 ? settings_of_17 : "",
	    lock_timeout(until), commit);
	return 0;
}

/* Add the value of the variable WORD.  Returns false if WORD is unknown. */
static bool add_value(struct pg_lock *lock, const char *word)
{
	struct pg_query *query = &lock->query;

	if (strcmp(word, "name") == 0)
		add(query, "%s", query->name);
	else if (strcmp(word, "id") == 0)
		add(query, "%" PRId64, lock->id);
	else if (strcmp(word, "mode") == 0)
		add(query, "'%s'", lease_mode_name(lock->options->mode));
	else if (strcmp(word, "slots") == 0)
		add(query, "%u", lock->options->slots);
	else if (strcmp(word, "lease") == 0)
		add(query, "'%" PRId64 " ms'", lock->ttl / MILLISECOND);
	else if (strcmp(word, "placelease") == 0)
		add(query, "'%" PRId64 " ms'", lock->place_ttl / MILLISECOND);
	else if (strcmp(word, "client") == 0)
		add(query, "%s", query->client);
	else if (strcmp(word, "command") == 0)
		add(query, "%ld", options_pid(lock->options));
	else if (strcmp(word, "seat") == 0 && lock->presence == PG_COMES_BY)
		add(query, "NULL::int");
	else if (strcmp(word, "seat") == 0 || strcmp(word, "backend") == 0)
		add(query, "%d", PQbackendPID(lock->db));
	else if (strcmp(word, "queued") == 0)
		add(query, "%s", lock->row == PG_ROW_QUEUED ? "true" : "false");
	else if (strcmp(word, "idle") == 0)
		add(query, "'%" PRId64 " ms'", 2 * lock->ttl / MILLISECOND);
	else if (strcmp(word, "waits") == 0)
		add(query, "%s", query->waits);
	else if (strcmp(word, "holds") == 0)
		add(query, "%s", query->holds);
	else if (strcmp(word, "token") == 0)
		add(query, "%s", lock->token);
	else if (strcmp(word, "channel") == 0)
		add(query, "semlock_%" PRId64, lock->id);
	else
		return false;
	return true;
}

void query_extend(struct pg_lock *lock, const char *sql)
{
	for (;;) {
		size_t plain = strcspn(sql, ":"), length = 0;
		char word[16];

		add(&lock->query, "%.*s", (int)plain, sql);
		sql += plain;
		if (*sql == '\0')
			return;
		if (sql[1] == ':') { /* a cast */
			add(&lock->query, "::");
			sql += 2;
			continue;
		}
		sql++;
		while (islower((unsigned char)sql[length]))
			length++;
		snprintf(word, sizeof word, "%.*s", (int)length, sql);
		if (!add_value(lock, word))
			abort();
		sql += length;
	}
}

void query_add(struct pg_lock *lock, const char *sql)
{
	add(&lock->query, "; ");
	query_extend(lock, sql);
}
