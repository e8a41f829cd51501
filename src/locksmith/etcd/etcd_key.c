/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/etcd/etcd_key.h"

/* The numbers of fields in etcd's messages: its rpc.proto. */
enum lease_field {
	GRANT_SECONDS = 1,
	GRANTED_ID = 2,
	GRANTED_SECONDS = 3,
	LEASE_ID = 1,
	KEPT_SECONDS = 3
};

#define LONGER 4 /* a long lease lasts this many times lock->ttl */

/* Get a lease of TTL ns; the server may make it longer. */
static enum etcd_reply get_lease(struct etcd_lock *lock, struct etcd_lease *lease, int64_t ttl,
    int64_t until)
{
	int64_t sent = clock_boottime(), asked = (ttl + SECOND - 1) / SECOND, seconds;
	enum etcd_reply reply;

	*lease = (struct etcd_lease){.id = 0};
	protobuf_int(etcd_rpc_begin(&lock->rpc), GRANT_SECONDS, asked);
	reply = etcd_rpc_call(&lock->rpc, ETCD_GRANT, until);
	if (reply != ETCD_OK)
		return reply;
	seconds = protobuf_number(lock->rpc.answer, GRANTED_SECONDS);
	lease->id = protobuf_number(lock->rpc.answer, GRANTED_ID);
	if (seconds < asked || seconds > LONGEST_SECONDS || lease->id == 0) {
		lease->id = 0;
		return error_plain(&lock->rpc.error, ERROR_UNAVAILABLE,
		    "the server granted no lease");
	}
	lease->ttl = seconds * SECOND;
	/* Count from the first request: if a reply was lost, the request was repeated, and any of
	 * the requests may have made the lease. */
	lease->end = sent + lease->ttl;
	return ETCD_OK;
}

/* Did an answer take a twelfth of a lease, or not come in time?  (rpc.patience is four times what
 * the last answer took.) */
static bool is_slow(const struct etcd_lock *lock)
{
	return lock->rpc.patience >= lock->ttl / 3;
}

static int64_t long_ttl(const struct etcd_lock *lock)
{
	return earlier(LONGER * lock->ttl, LONGEST_SECONDS * SECOND);
}

/* Get a lease that may hold the lock.  It ends no earlier than the lease that holds the lock now,
 * because if the answer to the put is lost, the key may be under either.  On a slow server the new
 * lease is long, unless the user gave --ttl. */
static enum etcd_reply get_own_lease(struct etcd_lock *lock, struct etcd_lease *lease,
    int64_t until)
{
	int64_t left = lock->token != 0 ? lock->lease.end - clock_boottime() : 0;
	bool longer = is_slow(lock) && lock->options->ttl == 0;
	enum etcd_reply reply =
	    get_lease(lock, lease, later(longer ? long_ttl(lock) : lock->ttl, left), until);

	/* the lease may be longer than asked for: a server may have a minimum */
	if (reply == ETCD_OK && !longer && left <= lock->ttl)
		lock->ttl = lease->ttl;
	return reply;
}

static enum etcd_reply get_long_lease(struct etcd_lock *lock, struct etcd_lease *lease,
    int64_t until)
{
	enum etcd_reply reply = get_lease(lock, lease, long_ttl(lock), until);

	lease->place_only = true;
	return reply;
}

enum etcd_reply etcd_key_grant(struct etcd_lock *lock, int64_t until)
{
	const char *part = lock->options->mode == LEASE_SHARED  ? "#shared/"
	                   : lock->options->mode == LEASE_SLOTS ? "#slots/"
	                                                        : "";
	enum etcd_reply reply;

	lock->revision = 0;
	lock->token = 0;
	lock->slot = -1;
	lock->number[0] = '\0';
	lock->next.id = 0;
	lock->unsure = false;
	reply = is_slow(lock) ? ETCD_OK : get_own_lease(lock, &lock->lease, until);
	if (reply == ETCD_OK && is_slow(lock))
		reply = get_long_lease(lock, &lock->lease, until);
	if (reply == ETCD_OK)
		snprintf(lock->key, sizeof lock->key, "%s/%s%016" PRIx64, lock->name, part,
		    (uint64_t)lock->lease.id);
	return reply;
}

static enum etcd_reply keep_lease(struct etcd_lock *lock, struct etcd_lease *lease, int64_t until)
{
	int64_t sent = clock_boottime(), seconds;
	enum etcd_reply reply;

	lease->place_only = true;
	protobuf_int(etcd_rpc_begin(&lock->rpc), LEASE_ID, lease->id);
	reply = etcd_rpc_call(&lock->rpc, ETCD_KEEPALIVE, until);
	if (reply != ETCD_OK)
		return reply;
	/* for a lease that has ended, the reply has no TTL */
	seconds = protobuf_number(lock->rpc.answer, KEPT_SECONDS);
	if (seconds <= 0) {
		lease->id = 0;
		return ETCD_GONE;
	}
	lease->end = sent + (seconds < lease->ttl / SECOND ? seconds * SECOND : lease->ttl);
	return ETCD_OK;
}

enum etcd_reply etcd_key_keep(struct etcd_lock *lock, int64_t until)
{
	return keep_lease(lock, &lock->lease, until);
}

static void revoke_lease(struct etcd_lock *lock, struct etcd_lease *lease, int64_t until)
{
	if (lease->id == 0)
		return;
	protobuf_int(etcd_rpc_begin(&lock->rpc), LEASE_ID, lease->id);
	etcd_rpc_call(&lock->rpc, ETCD_REVOKE, until);
	lease->id = 0;
}

void etcd_key_revoke(struct etcd_lock *lock, int64_t until)
{
	revoke_lease(lock, &lock->next, until);
	revoke_lease(lock, &lock->lease, until);
}

enum etcd_reply etcd_key_look(struct etcd_lock *lock, int64_t revision, int64_t until)
{
	struct protobuf_out *request = etcd_rpc_begin(&lock->rpc);
	struct etcd_key own;
	enum etcd_reply reply;
	size_t questions;

	questions = etcd_queue_ask(&lock->queue, request, TXN_SUCCESS, revision);
	if (revision != INT64_MAX)
		etcd_wire_range(request, TXN_SUCCESS,
		    &(struct etcd_wire_range){.key = lock->key, .keys_only = true});
	reply = etcd_rpc_call(&lock->rpc, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	lock->place.found = etcd_wire_first(lock->rpc.answer, questions, &own) &&
	                    lock->revision > 0 && own.made == lock->revision;
	lock->seen = etcd_wire_revision(lock->rpc.answer);
	etcd_queue_place(&lock->queue, lock->rpc.answer, &lock->place);
	return ETCD_OK;
}

/* Look before the put, so that the look finds only keys that are before ours. */
static void look_and_put(const struct etcd_lock *lock, struct protobuf_out *request,
    enum txn_branch branch)
{
	char value[ETCD_KEY];

	etcd_queue_ask(&lock->queue, request, branch, INT64_MAX);
	etcd_queue_value(lock->options, false, -1, value, sizeof value);
	etcd_wire_put(request, branch, lock->key, value, lock->lease.id);
}

/* If the lock is free, put our key as the holder's, else at the end of the queue.  Always put it at
 * the end of the queue if its lease is only for a place, or with slots, because no slot's number is
 * known before the look. */
static void enter_or_queue(struct etcd_lock *lock, struct protobuf_out *request)
{
	struct etcd_wire_opened inner;

	if (lock->options->mode == LEASE_SLOTS || lock->lease.place_only) {
		look_and_put(lock, request, TXN_SUCCESS);
		return;
	}
	etcd_queue_value(lock->options, true, -1, lock->value, sizeof lock->value);
	inner = etcd_wire_open(request, TXN_SUCCESS);
	etcd_queue_require_free(&lock->queue, request, INT64_MAX);
	etcd_wire_put(request, TXN_SUCCESS, lock->key, lock->value, lock->lease.id);
	look_and_put(lock, request, TXN_FAILURE);
	etcd_wire_close(request, inner);
}

/* Note what the requests of enter_or_queue() have done. */
static void note_queued(struct etcd_lock *lock)
{
	struct protobuf answer = lock->rpc.answer, inner = etcd_wire_inner(answer, 0);

	lock->revision = lock->put = lock->seen = etcd_wire_revision(answer);
	lock->place = (struct etcd_place){.found = true};
	if (etcd_wire_succeeded(inner))
		lock->token = lock->revision;
	else
		etcd_queue_place(&lock->queue, inner.at != NULL ? inner : answer, &lock->place);
}

/* The put was not carried out.  If our key exists, an earlier request made it, and its reply was
 * lost. */
static void note_found(struct etcd_lock *lock)
{
	struct etcd_key key;

	etcd_wire_first(lock->rpc.answer, 0, &key);
	lock->revision = key.made;
	lock->put = key.put;
	if (key.lease == lock->lease.id && !lock->lease.place_only && etcd_queue_holds(&key, false))
		lock->token = key.put;
}

enum etcd_reply etcd_key_queue(struct etcd_lock *lock, int64_t unless_newer, int64_t until,
    bool *made)
{
	const struct etcd_span *all = &lock->queue.all;
	struct protobuf_out *request = etcd_rpc_begin(&lock->rpc);
	enum etcd_reply reply;
	bool done;

	if (unless_newer >= 0)
		etcd_wire_condition(request, all->first, all->end, TXN_LESS, unless_newer + 1);
	else
		etcd_wire_made_at(request, lock->key, 0);
	enter_or_queue(lock, request);
	etcd_wire_range(request, TXN_FAILURE, &(struct etcd_wire_range){.key = lock->key});
	reply = etcd_rpc_call(&lock->rpc, ETCD_TXN, until);
	if (reply == ETCD_GONE)
		lock->lease.id = 0; /* the lease does not exist: do not revoke it */
	if (reply != ETCD_OK)
		return reply;
	done = etcd_wire_succeeded(lock->rpc.answer);
	if (done)
		note_queued(lock);
	else
		note_found(lock);
	*made = lock->revision > 0;
	return done || !*made ? ETCD_OK : etcd_key_look(lock, lock->revision, until);
}

enum etcd_reply etcd_key_all(struct etcd_lock *lock, int64_t until, struct protobuf *keys)
{
	const struct etcd_span *all = &lock->queue.all;
	enum etcd_reply reply;

	etcd_wire_range(etcd_rpc_begin(&lock->rpc), TXN_SUCCESS,
	    &(struct etcd_wire_range){.key = all->first,
		.end = all->end,
		.order = TXN_OLDEST_FIRST});
	reply = etcd_rpc_call(&lock->rpc, ETCD_TXN, until);
	*keys = etcd_wire_keys(lock->rpc.answer, 0);
	return reply;
}

/* What became of a put under a lease. */
enum put_result {
	PUT_DONE,
	PUT_GONE,    /* the key no longer exists */
	PUT_BLOCKED, /* when entering: it is not our turn */
	PUT_BEHIND   /* an earlier request of ours has put the key, at lock->put: try again */
};

/* Prepare our key to become the holder's, with SLOT; -1: none. */
static void take_slot(struct etcd_lock *lock, int slot)
{
	lock->slot = slot;
	if (slot >= 0)
		snprintf(lock->number, sizeof lock->number, "%.*s%d", ETCD_KEY - 24,
		    lock->queue.numbers.first, slot);
	etcd_queue_value(lock->options, true, slot, lock->value, sizeof lock->value);
}

static enum put_result put_result(struct etcd_lock *lock, int64_t lease)
{
	struct protobuf answer = lock->rpc.answer;
	struct etcd_key key;

	lock->seen = etcd_wire_revision(answer);
	if (etcd_wire_succeeded(answer)) {
		lock->put = lock->seen;
		return PUT_DONE;
	}
	if (!etcd_wire_first(answer, 0, &key) || key.made != lock->revision)
		return PUT_GONE;
	lock->put = key.put;
	if (lock->token == 0 && !etcd_queue_holds(&key, false))
		return PUT_BLOCKED;
	/* use the slot that the earlier request has taken: a look since then may have found another
	 * one */
	if (lock->token == 0 && lock->slot >= 0)
		take_slot(lock, etcd_queue_slot(&key));
	/* if the key is under LEASE, this very put was carried out before, and its answer was
	 * lost */
	return key.lease == lease ? PUT_DONE : PUT_BEHIND;
}

/* Put our key, if it still exists, and its slot's number under LEASE.  REQUEST was begun, and may
 * have more conditions, for entering.  A repeated request omits these conditions: it is only sent
 * if an earlier request has made our key the holder's, so they were met. */
static enum etcd_reply put_under(struct etcd_lock *lock, struct protobuf_out *request,
    struct etcd_lease lease, int64_t until)
{
	enum put_result result = PUT_BEHIND;

	while (result == PUT_BEHIND) {
		enum etcd_reply reply;

		etcd_wire_made_at(request, lock->key, lock->revision);
		etcd_wire_put_at(request, lock->key, lock->put);
		etcd_wire_put(request, TXN_SUCCESS, lock->key, lock->value, lease.id);
		if (lock->number[0] != '\0')
			etcd_wire_put(request, TXN_SUCCESS, lock->number, lock->value, lease.id);
		etcd_wire_range(request, TXN_FAILURE, &(struct etcd_wire_range){.key = lock->key});
		reply = etcd_rpc_call(&lock->rpc, ETCD_TXN, until);
		lock->unsure = reply != ETCD_OK && (lock->unsure || lock->rpc.unsure);
		if (reply != ETCD_OK)
			return reply;
		result = put_result(lock, lease.id);
		request = etcd_rpc_begin(&lock->rpc);
	}
	if (result == PUT_GONE)
		return ETCD_GONE;
	if (result == PUT_BLOCKED)
		return ETCD_OK;
	if (lock->token == 0)
		lock->token = lock->put;
	lock->lease = lease;
	lock->next.id = 0;
	return ETCD_OK;
}

/* Choose a lease that was never renewed and has at least half of the ttl left, which saves the
 * holder a renewal.  Get a new one if there is none. */
static enum etcd_reply lease_to_enter(struct etcd_lock *lock, struct etcd_lease *lease,
    int64_t until)
{
	int64_t half = clock_boottime() + lock->ttl / 2;
	enum etcd_reply reply = ETCD_OK;

	*lease = lock->lease;
	if (!lease->place_only && lease->end >= half)
		return ETCD_OK;
	if (lock->next.id == 0 || lock->next.end < half)
		reply = get_own_lease(lock, &lock->next, until);
	*lease = lock->next;
	return reply;
}

enum etcd_reply etcd_key_enter(struct etcd_lock *lock, int64_t until)
{
	struct etcd_lease lease;
	struct protobuf_out *request;
	enum etcd_reply reply = lease_to_enter(lock, &lease, until);

	if (reply != ETCD_OK)
		return reply;
	request = etcd_rpc_begin(&lock->rpc);
	take_slot(lock, lock->options->mode == LEASE_SLOTS ? (int)lock->place.slot : -1);
	if (lock->slot >= 0)
		etcd_wire_made_at(request, lock->number, 0);
	if (lock->place.blocked)
		etcd_queue_require_free(&lock->queue, request, lock->revision);
	reply = put_under(lock, request, lease, until);
	/* If the put failed, look in a second transaction.  The first usually succeeds, and its
	 * answer is shorter without a look. */
	return reply != ETCD_OK || lock->token != 0 ? reply
	                                            : etcd_key_look(lock, lock->revision, until);
}

/* From START on, name the command to others: its PID is known now. */
static void name_command(struct etcd_lock *lock)
{
	const char *field = strstr(lock->value, " pid=");
	char value[sizeof lock->value];

	if (field == NULL)
		return;
	field += strlen(" pid=");
	snprintf(value, sizeof value, "%.*s%ld%s", (int)(field - lock->value), lock->value,
	    options_pid(lock->options), field + strspn(field, "0123456789"));
	memcpy(lock->value, value, sizeof value);
}

enum etcd_reply etcd_key_renew(struct etcd_lock *lock, int64_t until)
{
	enum etcd_reply reply = lock->unsure ? ETCD_OK : get_own_lease(lock, &lock->next, until);

	name_command(lock);
	return reply == ETCD_OK ? put_under(lock, etcd_rpc_begin(&lock->rpc), lock->next, until)
	                        : reply;
}

/* Find out which lease our key is under. */
static enum etcd_reply find_lease(struct etcd_lock *lock, int64_t until)
{
	struct etcd_key key;
	enum etcd_reply reply;

	etcd_wire_range(etcd_rpc_begin(&lock->rpc), TXN_SUCCESS,
	    &(struct etcd_wire_range){.key = lock->key, .keys_only = true});
	reply = etcd_rpc_call(&lock->rpc, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	if (!etcd_wire_first(lock->rpc.answer, 0, &key) || key.made != lock->revision)
		return ETCD_GONE;
	lock->put = key.put;
	if (key.lease == lock->next.id) {
		lock->lease = lock->next;
		lock->next.id = 0;
		lock->unsure = false;
	}
	return ETCD_OK;
}

/* A renewal whose answer was lost may still be carried out at any moment: keep its lease alive,
 * too.  If that lease has ended, the renewal cannot be carried out any more. */
static enum etcd_reply keep_next(struct etcd_lock *lock, int64_t until)
{
	enum etcd_reply reply = keep_lease(lock, &lock->next, until);

	if (reply != ETCD_GONE)
		return reply;
	lock->unsure = false;
	return ETCD_OK;
}

enum etcd_reply etcd_key_prolong(struct etcd_lock *lock, int64_t until)
{
	enum etcd_reply reply = lock->unsure ? find_lease(lock, until) : ETCD_OK;

	if (reply == ETCD_OK && lock->unsure)
		reply = keep_next(lock, until);
	if (reply == ETCD_OK)
		reply = etcd_key_keep(lock, until);
	if (reply == ETCD_OK && lock->unsure)
		lock->lease.end = earlier(lock->lease.end, lock->next.end);
	return reply;
}

enum etcd_reply etcd_key_release(struct etcd_lock *lock, int64_t until)
{
	struct protobuf_out *request = etcd_rpc_begin(&lock->rpc);
	enum etcd_reply reply;

	etcd_wire_made_at(request, lock->key, lock->revision);
	etcd_wire_delete(request, TXN_SUCCESS, lock->key);
	if (lock->number[0] != '\0')
		etcd_wire_delete(request, TXN_SUCCESS, lock->number);
	reply = etcd_rpc_call(&lock->rpc, ETCD_TXN, until);
	if (reply != ETCD_OK)
		return reply;
	lock->token = 0;
	return etcd_wire_succeeded(lock->rpc.answer) ? ETCD_OK : ETCD_GONE;
}
