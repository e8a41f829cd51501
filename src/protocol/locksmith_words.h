/* SPDX-License-Identifier: MIT */
/* protocol/locksmith_words.h - the protocol between semlock and its helpers, for both ends;
 * semlock-locksmith(7). */
#ifndef SEMLOCK_PROTOCOL_LOCKSMITH_WORDS_H
#define SEMLOCK_PROTOCOL_LOCKSMITH_WORDS_H

enum {
	LOCKSMITH_PROTOCOL = 2, /* the version of the protocol */
	LOCKSMITH_LINE = 1024   /* bytes; longer than any line */
};

/* The name of a helper is this prefix and the scheme. */
#define LOCKSMITH_PREFIX "semlock-locksmith-"

/* From a helper: the first word of a line. */
#define SAYS_LOCKSMITH "LOCKSMITH"
#define SAYS_WAIT "WAIT"
#define SAYS_OK "OK"
#define SAYS_HELD "HELD"
#define SAYS_LOST "LOST"
#define SAYS_FREE "FREE"
#define SAYS_BUSY "BUSY"
#define SAYS_ERR "ERR"
#define SAYS_NOTE "NOTE"
#define SAYS_WHO "WHO"

/* To a helper: the first word of a line. */
#define TOLD_START "START"
#define TOLD_UNLOCK "UNLOCK"

/* Fields of the lines, in both directions. */
#define FIELD_TOKEN "token="
#define FIELD_SLOT "slot="
#define FIELD_LEASE "lease="
#define FIELD_DEADLINE "deadline="
#define FIELD_MODE "mode="
#define FIELD_PID "pid="
#define FIELD_HOST "host="
#define FIELD_SINCE "since="
#define FIELD_NOTE "note="
#define FIELD_STATE "state="

/* What a helper offers: the words of its first line, after LOCKSMITH and the version. */
#define OFFER_SHARED "shared"
#define OFFER_SLOTS "slots"
#define OFFER_ORDER "order"
#define OFFER_TOKEN "token"
#define OFFER_QUEUE_MAX "queue-max"

#endif
