/* SPDX-License-Identifier: MIT */
/* locksmith_parts - the parsers of semlock-locksmith on good, bad and random text.  Prints "ok
 * NAME" or "wrong LINE: EXPRESSION"; exit status 1 if anything was wrong. */
#include <config.h>

#include "locksmith/curl/buffer.h"
#include "locksmith/common/loop.h"
#include "locksmith/etcd/etcd_queue.h"
#include "locksmith/etcd/protobuf.h"
#include "locksmith/ftp/listing.h"
#include "locksmith/common/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

#define MUST(e) ((e) ? (void)0 : (void)(wrong++, printf("wrong %d: %s\n", __LINE__, #e)))

static void signs(void)
{
	struct owner_sign t, u;
	static const char *const bad[] = {"", "sl1", "sl1.", "sl1.x",
	    "sl2.x.60.17.3c25951782f8c905.1.h", "sl1.y.60.17.3c25951782f8c905.1.h",
	    "sl1.x.60.17.3c25951782f8c90.1.h", "sl1.x.60.17.3c25951782f8c905.1.",
	    "sl1.x.60.17.3c25951782f8c905.1.a/b", "sl1.x.60.17.3c25951782f8c905.1.a b",
	    "sl1.x.-1.17.3c25951782f8c905.1.h", "sl1.x.99999999.17.3c25951782f8c905.1.h",
	    "sl1.s.60.17.3c25951782f8c905.1.h", "sl1.x.60..3c25951782f8c905.1.h",
	    "sl1.x.60.17.3c25951782f8c905.99999999999999999999.h",
	    "sl1.x.60.17.3c25951782f8c90g.1.h"};

	sign_make(&t, 60, 4242);
	t.beat = 18;
	sign_name(&t);
	MUST(sign_parse(t.name, &u));
	MUST(u.ttl == 60 && u.beat == 18 && u.pid == 4242);
	MUST(strcmp(t.host, u.host) == 0 && strcmp(t.nonce, u.nonce) == 0 &&
	     strcmp(t.name, u.name) == 0);
	MUST(sign_parse("sl1.x.60.17.3c25951782f8c905.15496.web1.example.org", &u));
	MUST(strcmp(u.host, "web1.example.org") == 0);
	MUST(sign_parse("SL1.X.60.17.3C25951782F8C905.15496.WEB1", &u));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (sign_parse(bad[i], &u))
			wrong++, printf("wrong: took %s\n", bad[i]);
	puts("ok signs");
}

static void listings(void)
{
	static struct listing l;
	struct owner_sign one, two;

	sign_make(&one, 60, 1);
	sign_make(&two, 60, 1);
	listing_clear(&l);
	listing_add(&l, ".");
	listing_add(&l, "..");
	MUST(listing_empty(&l) && !listing_holds(&l, &one));
	listing_add(&l, one.name);
	MUST(listing_holds(&l, &one) && !listing_holds(&l, &two));
	listing_add(&l, two.name);
	MUST(!listing_holds(&l, &one) && !listing_holds(&l, &two));
	listing_clear(&l);
	listing_add(&l, one.name);
	listing_add(&l, "a foreign thing");
	MUST(!listing_holds(&l, &one));
	listing_clear(&l);
	listing_add(&l, "sl1.x.60.17.3c25951782f8c905.1.h");
	MUST(listing_find(&l, "SL1.X.60.17.3C25951782F8C905.1.H") != NULL &&
	     listing_find(&l, "sl1.x.60.18.3c25951782f8c905.1.h") == NULL);
	listing_clear(&l);
	for (int i = 0; i < LISTING_MOST + 5; i++) {
		sign_make(&one, 60, 1);
		listing_add(&l, one.name);
	}
	MUST(l.signs == LISTING_MOST && l.foreign == 5);
	puts("ok listings");
}

static void silence(void)
{
	static struct listing l, before;
	struct owner_sign t;

	sign_make(&t, 10, 1);
	listing_clear(&before);
	listing_clear(&l);
	listing_add(&l, t.name);
	listing_note_ages(&l, &before, 100 * SECOND);
	before = l;
	listing_note_ages(&l, &before, 101 * SECOND);
	MUST(listing_silent(&l, 111 * SECOND) == NULL);
	MUST(listing_silent(&l, 111 * SECOND + 1) != NULL);
	t.beat++;
	sign_name(&t);
	listing_clear(&l);
	listing_add(&l, t.name);
	listing_note_ages(&l, &before, 112 * SECOND);
	MUST(listing_silent(&l, 120 * SECOND) == NULL && l.empty_since == NEVER);
	before = l;
	listing_clear(&l);
	listing_note_ages(&l, &before, 113 * SECOND);
	before = l;
	listing_note_ages(&l, &before, 114 * SECOND);
	MUST(l.empty_since == 113 * SECOND);
	puts("ok silence");
}

static char names[4096];

static void note(void *data, const char *name)
{
	(void)data;
	strncat(names, name, sizeof names - strlen(names) - 2);
	strcat(names, "|");
}

static const char *stat_names(const char *reply)
{
	names[0] = '\0';
	listing_of_stat(reply, note, NULL);
	return names;
}

static void ftp_listings(void)
{
	int64_t a, b;

	MUST(strcmp(stat_names(
			"213-Status follows:\r\n11-20-26  09:10PM       <DIR>          a b\r\n"
			"11-20-2026  21:10              4096 c\r\n213 End\r\n"),
		 "a b|c|") == 0);
	MUST(strcmp(stat_names("213-Status follows:\r\ndrwxr-xr-x    2 0        0            4096 "
			       "Nov 20 21:10 .\r\n"
			       "drwxr-xr-x    2 0        0            4096 Nov 20 21:10 "
			       "sl1.x\r\n213 End of status\r\n"),
		 ".|sl1.x|") == 0);
	MUST(strcmp(stat_names(
			"220-hello\r\nsl1.trap\r\n220 go\r\n331 x\r\n230 in\r\n212-Status of L\r\n"
			" drwxr-xr-x   2 u g 4096 Nov 20 21:10 a b\r\n212 End\r\n"),
		 "a b|") == 0);
	/* proftpd with MultilineRFC2228: each line has the code. */
	MUST(strcmp(stat_names("213-Status of L:\r\n213-total 4\r\n213-drwxr-xr-x   2 u g 4096 Nov "
			       "20 21:10 sl1.x\r\n"
			       "213-11-20-26  09:10PM       <DIR>          "
			       "a\r\n213-Connected\r\n213 End of status\r\n"),
		 "sl1.x|a|") == 0);
	MUST(strcmp(stat_names("213 Empty\r\n"), "") == 0 && strcmp(stat_names(""), "") == 0);
	MUST(strcmp(stat_names(
			"213-x\r\ntotal 0\r\n-rw-r--r-- 1 u 4096 Nov 20 21:10 f\r\n213 End\r\n"),
		 "f|") == 0);
	names[0] = '\0';
	listing_of_names("L/a\r\nb\n", note, NULL);
	MUST(strcmp(names, "a|b|") == 0);
	MUST(listing_modified("250-x\r\n modify=20240229235959;type=dir; /L\r\n", &a) == 0);
	MUST(listing_modified("MODIFY=20240301000009.123; x", &b) == 0 && b - a == 10);
	MUST(listing_modified("modify=2024", &a) == -1 && listing_modified("", &a) == -1);
	puts("ok FTP listings");
}

static void urls(void)
{
	struct url u;
	struct error error;
	char name[64];

	MUST(url_parse("etcd://cron@h1,h2:1,[::1]:23/jobs/nightly/", "", &u, &error) == 0);
	MUST(u.hosts == 3 && strcmp(u.host[2], "[::1]:23") == 0 &&
	     strcmp(u.path, "jobs/nightly") == 0);
	MUST(strcmp(u.user, "cron") == 0);
	url_hostname(u.host[2], name, sizeof name);
	MUST(strcmp(name, "::1") == 0);
	url_hostname(u.host[1], name, sizeof name);
	MUST(strcmp(name, "h2") == 0);
	MUST(url_parse("ftp://a%40b@h/x%20y", "", &u, &error) == 0 && strcmp(u.user, "a@b") == 0 &&
	     strcmp(u.path, "x y") == 0);
	MUST(url_parse("ftp://u:p@h/x", "", &u, &error) == -1 && error.kind == ERROR_USAGE);
	MUST(url_parse("ftp://h/x%0a", "", &u, &error) == -1 &&
	     url_parse("ftp://h/x%", "", &u, &error) == -1);
	MUST(url_parse("ftp://h/x%4", "", &u, &error) == -1 &&
	     url_parse("ftp://h/x%41", "", &u, &error) == 0);
	MUST(url_parse("ftp://h /x", "", &u, &error) == -1 &&
	     url_parse("ftp://@h/x", "", &u, &error) == -1);
	MUST(url_parse("sftp://[2001:db8::1]/a", "", &u, &error) == 0 &&
	     strcmp(u.host[0], "[2001:db8::1]") == 0);
	MUST(url_parse("sftp://[::ffff:1.2.3.4]:65535/a", "", &u, &error) == 0);
	MUST(url_parse("sftp://h:1/..a", "", &u, &error) == 0 &&
	     url_parse("ftp://h:1/../a", "", &u, &error) == 0);
	MUST(url_parse("ftp://h:00080/a", "", &u, &error) == 0);
	puts("ok URLs");
}

static void small_things(void)
{
	struct buffer b = {.limit = 5};
	int64_t ns;

	MUST(buffer_add(&b, "abc", 3) == 0 && buffer_add(&b, "de", 2) == 0 &&
	     buffer_add(&b, "f", 1) == -1 && b.overflow);
	MUST(strcmp(buffer_text(&b), "abcde") == 0);
	buffer_clear(&b);
	MUST(bounded_duration("1.5", &ns) == 0 && ns == 1500000000 &&
	     bounded_duration("-1", &ns) == -1);
	MUST(bounded_duration("nan", &ns) == -1 && bounded_duration("1e99", &ns) == -1 &&
	     bounded_duration("1x", &ns) == -1);
	puts("ok small things");
}

/* What protobuf_* wrote, read back. */
static struct protobuf message_of(struct protobuf_out *m)
{
	struct protobuf sent = {m->bytes, m->bytes + m->used}, message = {NULL, NULL};

	protobuf_finish(m);
	MUST(protobuf_unwrap(&sent, &message) && sent.at == sent.end);
	return message;
}

static void messages(void)
{
	static const int64_t numbers[] = {0, 1, 127, 128, 16384, INT64_MAX, -1, INT64_MIN};
	static struct protobuf_out m;
	char text[1000], back[1000];
	struct protobuf message, inner;
	size_t outer;

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	protobuf_start(&m);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		protobuf_int(&m, 1 + (unsigned int)i, numbers[i]);
	outer = protobuf_open(&m, 64);
	protobuf_text(&m, 2, text);
	protobuf_text(&m, 2, "second");
	protobuf_close(&m, outer);
	message = message_of(&m);
	MUST(protobuf_whole(message));
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		MUST(protobuf_number(message, 1 + (unsigned int)i) == numbers[i]);
	inner = protobuf_bytes(message, 64, 0);
	protobuf_string(protobuf_bytes(inner, 2, 0), back, sizeof back);
	MUST(strcmp(back, text) == 0);
	protobuf_string(protobuf_bytes(inner, 2, 1), back, 4);
	MUST(strcmp(back, "sec") == 0);
	MUST(protobuf_bytes(inner, 2, 2).at == NULL && protobuf_number(inner, 9) == 0);
	message.end--;
	MUST(!protobuf_whole(message) && protobuf_bytes(message, 64, 0).at == NULL);
	puts("ok messages");
}

static void bad_messages(void)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {{"\x08", 1}, {"\0\1", 2}, {"\x08\x80", 2}, {"\x0a\5abcd", 6}, {"\x0b\x0c", 2},
	    {"\x0f\1", 2}, {"\x09\1\2\3", 4}, {"\x0d\1\2\3", 4},
	    {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 12},
	    {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11}, {"\xff\xff\xff\xff\xff\1\1", 7}};
	struct protobuf_field field;
	struct protobuf m, message;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		m.at = (const unsigned char *)bad[i].bytes;
		m.end = m.at + bad[i].size;
		MUST(!protobuf_whole(m) && !protobuf_next(&m, &field) &&
		     m.at == (const unsigned char *)bad[i].bytes);
	}
	m = (struct protobuf){(const unsigned char *)"\0\0\0\0\2a", NULL};
	m.end = m.at + 6;
	MUST(!protobuf_unwrap(&m, &message)); /* incomplete */
	m.end = m.at + 4;
	MUST(!protobuf_unwrap(&m, &message));
	m = (struct protobuf){(const unsigned char *)"\1\0\0\0\0", NULL};
	m.end = m.at + 5;
	MUST(!protobuf_unwrap(&m, &message)); /* compressed */
	puts("ok bad messages");
}

/* Random bytes of an alphabet that gets past the parsers' first checks. */
static void noise(void)
{
	static const char *const bits[] = {"sl1.", "x.", "n3.", "60.", "17.", "3c25951782f8c905.",
	    "host", "213-", "213 ", "\r\n", "drwxr-xr-x ", " 4096 ", "modify=", "machine ",
	    "default ", "login ", "password ", "\"", "\\", "macdef ", "://", "%", "%41", "@", ",",
	    "/", ":", "[", "]", "\xff", "0", "99999999999999999999", "#", "\n\n", "ftp"};
	static char text[4096];
	static struct listing l;
	struct owner_sign t;
	struct url u;
	struct error error;
	int64_t s;

	srand(1);
	for (int round = 0; round < 20000; round++) {
		text[0] = '\0';
		for (int i = rand() % 40; i > 0; i--)
			strcat(text, bits[(size_t)rand() % (sizeof bits / sizeof bits[0])]);
		listing_clear(&l);
		listing_add(&l, text);
		if (sign_parse(text, &t))
			MUST(strpbrk(t.name, "/ \r\n\"") == NULL);
		stat_names(text);
		names[0] = '\0';
		listing_of_names(text, note, NULL);
		listing_modified(text, &s);
		if (url_parse(text, "", &u, &error) == 0)
			MUST(strpbrk(u.path, "\r\n") == NULL && u.path[0] != '\0' && u.hosts > 0);
		protobuf_whole(
		    (struct protobuf){(unsigned char *)text, (unsigned char *)strchr(text, '\0')});
	}
	puts("ok noise");
}

/* Adds a response with one key, or with none if key is NULL. */
static void respond(struct protobuf_out *m, const char *key, const char *value, int revision,
    int version)
{
	size_t response = protobuf_open(m, 3), range = protobuf_open(m, 1), opened;

	if (key != NULL) {
		opened = protobuf_open(m, 2);
		protobuf_text(m, 1, key);
		protobuf_int(m, 2, revision);
		protobuf_int(m, 4, version);
		protobuf_text(m, 5, value);
		protobuf_close(m, opened);
	}
	protobuf_close(m, range);
	protobuf_close(m, response);
}

static struct protobuf_out responses;

static struct etcd_place place_of(enum lease_mode mode)
{
	struct options o = {.mode = mode, .slots = 1};
	struct etcd_place p = {.found = true};
	static struct protobuf_out questions;
	struct etcd_queue q;

	etcd_queue_init(&q, "L", &o);
	protobuf_start(&questions);
	MUST(etcd_queue_ask(&q, &questions, TXN_SUCCESS, 7) == (mode == LEASE_SLOTS ? 5 : 3));
	MUST(protobuf_whole(message_of(&questions)));
	etcd_queue_place(&q, message_of(&responses), &p);
	protobuf_start(&responses);
	MUST(p.found);
	return p;
}

static bool watches(const struct etcd_place *p, const char *key)
{
	return strcmp(p->watch.first, key) == 0;
}

static void queues(void)
{
	struct etcd_place p;

	protobuf_start(&responses);
	p = place_of(LEASE_EXCLUSIVE);
	MUST(!p.blocked && p.who[0] == '\0');
	/* The nearer one of two is watched, the oldest is named. */
	respond(&responses, "L/1", "", 5, 1);
	respond(&responses, "L/a", "", 6, 1);
	respond(&responses, "L/0", "holds exclusive pid=3", 4, 1);
	p = place_of(LEASE_SHARED);
	MUST(p.blocked && watches(&p, "L/a") && !p.puts &&
	     strcmp(p.who, "mode=exclusive pid=3") == 0);
	respond(&responses, NULL, "", 0, 0);
	respond(&responses, "L/9", "", 4, 1);
	respond(&responses, "L/9", "", 4, 1);
	p = place_of(LEASE_EXCLUSIVE);
	MUST(p.blocked && watches(&p, "L/9") && strstr(p.who, "another program's key L/9"));
	puts("ok queues");
}

/* The place among slots behind a key of that version (0: none) when the first slot is free, or
 * TAKEN. */
static struct etcd_place slot_behind(int version, bool taken)
{
	for (int i = 0; i < 2; i++)
		respond(&responses, NULL, "", 0, 0);
	respond(&responses, "L/#slots/0", "holds slots=1 slot=0 pid=1", 4, 1);
	respond(&responses, version > 0 ? "L/#slots/a" : NULL, "", 5, version);
	respond(&responses, taken ? "L/#slots#/0" : NULL, "", 5, 1);
	return place_of(LEASE_SLOTS);
}

static void slot_queues(void)
{
	struct etcd_place p = slot_behind(0, false);

	MUST(!p.blocked && p.slot == 0);
	/* The predecessor waits, then it holds; then its key has gone, and its number has not. */
	p = slot_behind(1, false);
	MUST(p.blocked && p.puts && watches(&p, "L/#slots/a") && p.watch.end[0] == '\0');
	p = slot_behind(2, true);
	MUST(p.blocked && !p.puts && watches(&p, "L/#slots/") &&
	     strcmp(p.watch.end, "L/#slots0") == 0);
	p = slot_behind(0, true);
	MUST(p.blocked && !p.puts && watches(&p, "L/#slots#/") &&
	     strcmp(p.watch.end, "L/#slots#0") == 0);
	MUST(strcmp(p.who, "mode=slots slots=1 slot=0 pid=1") == 0);
	puts("ok slot queues");
}

int main(void)
{
	signs();
	listings();
	silence();
	ftp_listings();
	urls();
	small_things();
	messages();
	bad_messages();
	queues();
	slot_queues();
	noise();
	return wrong > 0;
}
