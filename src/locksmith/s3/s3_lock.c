/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/s3/s3_lock.h"

#define FORMAT "semlock 1"
#define LONGEST_RECORD 1024
/* in seconds: the server rounds its two dates, and they may be of two machines */
#define OLD_AFTER 5

/* Take WORD off the beginning of *TEXT. */
static bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length) != 0)
		return false;
	*text += length;
	return true;
}

/* Take WORD and the number after it, at most 18 digits. */
static bool take_number(const char **text, const char *word, int64_t *number)
{
	char *end;

	if (!take_word(text, word) || !isdigit((unsigned char)**text) ||
	    strspn(*text, "0123456789") > 18)
		return false;
	*number = strtoll(*text, &end, 10);
	*text = end;
	return true;
}

static bool record_parse(const char *text, struct s3_record *record)
{
	size_t length;

	*record = (struct s3_record){.held = true};
	if (!take_word(&text, FORMAT " state="))
		return false;
	if (take_word(&text, "free"))
		record->held = false;
	else if (!take_word(&text, "held"))
		return false;
	if (!take_number(&text, " token=", &record->token) ||
	    !take_number(&text, " beat=", &record->beat) ||
	    !take_number(&text, " lease=", &record->lease) || !take_word(&text, " tag=") ||
	    strspn(text, "0123456789abcdef") != S3_TAG - 1)
		return false;
	memcpy(record->tag, text, S3_TAG - 1);
	text += S3_TAG - 1;
	if (take_word(&text, " etag=bare"))
		record->bare = true;
	else if (!take_word(&text, " etag=quoted"))
		return false;
	if (take_word(&text, " waited=yes "))
		record->waited = true;
	else if (!take_word(&text, " waited=no "))
		return false;
	length = strlen(text);
	if (strncmp(text, "mode=", 5) != 0 || text[length - 1] != '\n' ||
	    length > sizeof record->holder)
		return false;
	memcpy(record->holder, text, length - 1);
	return true;
}

static void record_format(const struct s3_lock *lock, bool held, char *text, size_t size)
{
	snprintf(text, size,
	    FORMAT " state=%s token=%" PRId64 " beat=%" PRId64 " lease=%" PRId64
		   " tag=%s etag=%s waited=%s mode=exclusive pid=%ld%s\n",
	    held ? "held" : "free", lock->token, lock->beat, lock->lease, lock->tag,
	    lock->bare ? "bare" : "quoted", lock->waited ? "yes" : "no", options_pid(lock->options),
	    lock->holder);
}

void s3_lock_set_token(struct s3_lock *lock, int64_t token)
{
	char holder[sizeof lock->holder + 40];

	options_holder(lock->options, holder, sizeof holder);
	snprintf(lock->holder, sizeof lock->holder, "%s", holder + strcspn(holder, " "));
	for (char *p = lock->holder; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	lock->token = token;
}

bool s3_lock_is_ours(const struct s3_lock *lock)
{
	return lock->etag[0] != '\0' && strcmp(lock->record.tag, lock->tag) == 0;
}

bool s3_lock_is_old(const struct s3_lock *lock)
{
	return lock->age >= 0 && lock->age >= 2 * (lock->record.lease / SECOND + 1) + OLD_AFTER;
}

bool s3_lock_was_waited_for(const struct s3_lock *lock, int64_t ns)
{
	return lock->etag[0] != '\0' && !lock->record.held && lock->record.waited &&
	       lock->age >= 0 && lock->age <= ns / SECOND + 2;
}

/* The object is not there. */
static void forget_object(struct s3_lock *lock)
{
	lock->etag[0] = '\0';
	lock->record = (struct s3_record){.held = false};
	lock->age = -1;
}

enum s3_reply s3_lock_read(struct s3_lock *lock, int64_t until)
{
	struct s3_server *server = &lock->server;
	enum s3_reply reply = s3_get(server, lock->etag, until);

	if (reply == S3_ABSENT)
		forget_object(lock);
	if (reply != S3_DONE && reply != S3_SAME)
		return reply;
	lock->age = server->date > 0 && server->changed > 0 ? server->date - server->changed : -1;
	if (reply == S3_SAME || strcmp(server->etag, lock->etag) == 0)
		return S3_SAME;
	if (!record_parse(buffer_text(&server->body), &lock->record)) {
		forget_object(lock);
		error_plain(&server->error, ERROR_CREATE,
		    "the object exists, but is not a lock: use another name");
		return S3_FATAL;
	}
	lock->seen = clock_boottime();
	strcpy(lock->etag, server->etag);
	if (!lock->learnt)
		lock->bare = lock->record.bare;
	return S3_DONE;
}

/* "If-Match: " and ETAG in the form that the server takes. */
static void if_match(const struct s3_lock *lock, const char *etag, char *condition, size_t size)
{
	size_t length = strlen(etag);
	bool strip = lock->bare && length >= 2 && etag[0] == '"' && etag[length - 1] == '"';

	snprintf(condition, size, "If-Match: %.*s", (int)(strip ? length - 2 : length),
	    strip ? etag + 1 : etag);
}

static enum s3_reply write_once(struct s3_lock *lock, bool held, int64_t until)
{
	char condition[S3_ETAG + 32] = "If-None-Match: *", text[LONGEST_RECORD];
	bool exists = lock->etag[0] != '\0';
	int64_t sent = clock_boottime();
	enum s3_reply reply;

	lock->beat++;
	lock->holds = lock->holds || held;
	if (lock->unknown == 0)
		lock->unknown = sent;
	record_format(lock, held, text, sizeof text);
	if (exists)
		if_match(lock, lock->etag, condition, sizeof condition);
	reply = s3_put(&lock->server, condition, text, until);
	if (reply != S3_DONE)
		return reply;
	lock->learnt = lock->learnt || exists;
	lock->since = sent;
	lock->unknown = 0;
	lock->holds = held;
	strcpy(lock->etag, lock->server.etag);
	record_parse(text, &lock->record);
	lock->seen = clock_boottime();
	return S3_DONE;
}

/* A write was refused, because an earlier write of ours, whose answer was lost, had changed the
 * object: lock->record is what that earlier one wrote. */
static enum s3_reply found_written(struct s3_lock *lock, bool held, int64_t until)
{
	if (lock->record.held != held)
		return write_once(lock, held, until);
	lock->since = lock->unknown;
	lock->unknown = 0;
	lock->holds = held;
	return S3_DONE;
}

enum s3_reply s3_lock_write(struct s3_lock *lock, bool held, int64_t until)
{
	enum s3_reply reply = write_once(lock, held, until);

	/* HTTP requires an ETag's quotes, but radosgw compares an ETag without them.  So if the
	 * object has not changed, the server has refused the form of the ETag: use the other
	 * form. */
	if (reply != S3_REFUSED || lock->learnt || lock->etag[0] == '\0')
		return reply;
	reply = s3_lock_read(lock, until);
	if (reply == S3_DONE && s3_lock_is_ours(lock))
		return found_written(lock, held, until);
	if (reply != S3_SAME)
		return reply == S3_DONE || reply == S3_ABSENT ? S3_REFUSED : reply;
	lock->bare = !lock->bare;
	return write_once(lock, held, until);
}

enum s3_reply s3_lock_look_back(struct s3_lock *lock, int64_t until)
{
	int64_t beat = lock->record.beat;
	enum s3_reply reply;
	char etag[S3_ETAG];

	strcpy(etag, lock->etag);
	lock->etag[0] = '\0'; /* have the server send the object even if it is unchanged */
	reply = s3_lock_read(lock, until);
	if (reply == S3_UNKNOWN || reply == S3_FATAL)
		strcpy(lock->etag, etag);
	if (reply != S3_DONE)
		return reply;
	if (!s3_lock_is_ours(lock))
		return S3_REFUSED;
	if (lock->record.beat == beat)
		return S3_SAME;
	lock->since = lock->unknown;
	lock->unknown = 0;
	return S3_DONE;
}

enum s3_reply s3_lock_guard(struct s3_lock *lock, bool created, int64_t until)
{
	char condition[S3_ETAG + 32], text[LONGEST_RECORD];
	enum s3_reply reply;

	/* If the server did this write, it would change nothing: TEXT is the present state. */
	record_format(lock, true, text, sizeof text);
	if_match(lock, "\"00000000000000000000000000000000\"", condition, sizeof condition);
	reply = s3_put(&lock->server, condition, text, until);
	if (reply == S3_REFUSED && created) {
		strcpy(condition, "If-None-Match: *");
		reply = s3_put(&lock->server, condition, text, until);
	}
	if (reply == S3_DONE)
		error_plain(&lock->server.error, ERROR_UNAVAILABLE,
		    "the server ignores %s, and so cannot lock (is the bucket versioned?)",
		    condition[3] == 'M' ? "If-Match" : "If-None-Match");
	return reply;
}
