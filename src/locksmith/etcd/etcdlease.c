/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcdlock.h"

#include "locksmith/common/clock.h"

#include <inttypes.h>
#include <stdio.h>

#define LONGEST_GRANT ((size_t)64 * 1024)

enum lease_field { GRANT_SECONDS = 1, GRANTED_ID = 2, GRANTED_SECONDS = 3, LEASE_ID = 1, KEPT_SECONDS = 3 };

/* Begins the request for a lease; returns its time in seconds. */
static int64_t ask_lease(struct etcdlock *k)
{
	int64_t seconds = (k->ttl + NS_PER_S - 1) / NS_PER_S;

	pb_int(etcdrpc_begin(&k->etcd), GRANT_SECONDS, seconds);
	return seconds;
}

/* Reads the id of a lease of at least *seconds out of an answer; 0: the server granted none. *seconds is
   its time then, which may be longer than was asked for. */
static int64_t granted(struct pb answer, int64_t *seconds)
{
	int64_t asked = *seconds;

	*seconds = pb_number(answer, GRANTED_SECONDS);
	return *seconds < asked || *seconds > LONGEST_SECONDS ? 0 : pb_number(answer, GRANTED_ID);
}

/* Gets a lease; *seconds is its time. */
static enum etcd_reply get_lease(struct etcdlock *k, int64_t *seconds, int64_t *id, int64_t until)
{
	enum etcd_reply reply;

	*seconds = ask_lease(k);
	reply = etcdrpc_call(&k->etcd, ETCD_GRANT, until);
	if (reply != ETCD_OK)
		return reply;
	*id = granted(k->etcd.answer, seconds);
	if (*id != 0)
		return ETCD_OK;
	failure_set(&k->etcd.failure, EXIT_UNAVAILABLE, "the server granted no lease");
	return ETCD_FATAL;
}

enum etcd_reply etcdlock_grant(struct etcdlock *k, int64_t until)
{
	int64_t seconds, sent = clock_boottime();
	const char *part = k->options->mode == LEASE_SHARED  ? "#shared/"
			   : k->options->mode == LEASE_SLOTS ? "#slots/"
							    : "";
	enum etcd_reply reply;

	k->revision = 0;
	k->slot = -1;
	reply = get_lease(k, &seconds, &k->lease, until);
	if (reply != ETCD_OK)
		return reply;
	k->ttl = seconds * NS_PER_S;
	/* If a reply was lost the request was repeated: the lease may begin at any of them; count from
	 * the first. */
	k->deadline = sent + k->ttl;
	snprintf(k->key, sizeof k->key, "%s/%s%016" PRIx64, k->name, part, (uint64_t)k->lease);
	snprintf(k->mark, sizeof k->mark, "%s#held/%s%016" PRIx64, k->name, part, (uint64_t)k->lease);
	etcdqueue_value(k->options, k->value, sizeof k->value);
	return ETCD_OK;
}

enum etcd_reply etcdlock_keep(struct etcdlock *k, int64_t until)
{
	int64_t sent = clock_boottime(), seconds;
	enum etcd_reply reply;

	pb_int(etcdrpc_begin(&k->etcd), LEASE_ID, k->lease);
	reply = etcdrpc_call(&k->etcd, ETCD_KEEPALIVE, until);
	if (reply != ETCD_OK)
		return reply;
	/* The reply about an ended lease has no TTL. */
	seconds = pb_number(k->etcd.answer, KEPT_SECONDS);
	if (seconds <= 0)
		return ETCD_GONE;
	k->deadline = sent + (seconds < k->ttl / NS_PER_S ? seconds * NS_PER_S : k->ttl);
	return ETCD_OK;
}

enum etcd_reply etcdmark_lease(struct etcdlock *k, int64_t until)
{
	int64_t seconds, sent = clock_boottime();
	enum etcd_reply reply = get_lease(k, &seconds, &k->mark_lease, until);

	if (reply == ETCD_OK)
		k->mark_deadline = sent + k->ttl;
	return reply;
}

void etcdmark_lease_start(struct etcdlock *k)
{
	k->mark_lease = 0;
	k->mark_deadline = clock_boottime() + k->ttl;
	ask_lease(k);
	if (grpc_open(&k->grant, LONGEST_GRANT) != 0)
		return;
	etcdrpc_prepare(&k->etcd, &k->grant, ETCD_GRANT, &k->etcd.request);
	grpc_start(&k->grant);
}

void etcdmark_lease_take(struct etcdlock *k, int64_t until)
{
	int64_t seconds = k->ttl / NS_PER_S;
	struct pb answer;

	if (k->grant.transfer.running)
		transfer_wait(until, &k->grant.transfer.ended, NULL);
	if (grpc_answer(&k->grant, &answer))
		k->mark_lease = granted(answer, &seconds);
	if (k->mark_lease == 0)
		k->mark_deadline = 0;
	grpc_close(&k->grant);
}

enum etcd_reply etcdlock_revoke(struct etcdlock *k, int64_t *lease, int64_t until)
{
	enum etcd_reply reply;

	if (*lease == 0)
		return ETCD_OK;
	pb_int(etcdrpc_begin(&k->etcd), LEASE_ID, *lease);
	reply = etcdrpc_call(&k->etcd, ETCD_REVOKE, until);
	if (reply == ETCD_GONE && k->etcd.sent > 1)
		reply = ETCD_OK; /* an earlier request, whose reply was lost, has done it */
	if (reply == ETCD_OK)
		*lease = 0;
	return reply;
}
