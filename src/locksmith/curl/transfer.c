/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/curl/transfer.h"

/* How long a turn of the loop takes at most while we wait for an answer, in ms: shortly after an
 * event, and later.  With hundreds of waiters at a slow server, turns of 20 ms would keep a
 * processor busy, perhaps the server's. */
#define FIRST_TURN_MS 20
#define LONGEST_TURN_MS 500

/* A process that gets the processor when it needs it ends a turn at most this late, on average. */
#define LATE (80 * MILLISECOND)

static CURLM *multi;
static int64_t last_event; /* on clock_boottime()'s clock */

int transfer_open(struct transfer *transfer)
{
	*transfer = (struct transfer){.easy = curl_easy_init()};
	if (multi == NULL)
		multi = curl_multi_init();
	if (transfer->easy == NULL || multi == NULL)
		return -1;
	curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->error);
	curl_easy_setopt(transfer->easy, CURLOPT_NOSIGNAL, 1L);
	/* Otherwise ending a transfer waits for the resolver, while a renewal is due. */
	curl_easy_setopt(transfer->easy, CURLOPT_QUICK_EXIT, 1L);
	/* No proxy: it could answer in the server's place. */
	curl_easy_setopt(transfer->easy, CURLOPT_PROXY, "");
	return 0;
}

static bool hung_up(curl_socket_t connection)
{
	char byte;
	ssize_t got = recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static int note_and_close(void *context, curl_socket_t connection)
{
	struct transfer *transfer = context;

	transfer->server_hung_up = transfer->server_hung_up || hung_up(connection);
	return close(connection);
}

void transfer_note_hang_up(struct transfer *transfer)
{
	curl_easy_setopt(transfer->easy, CURLOPT_CLOSESOCKETFUNCTION, note_and_close);
	curl_easy_setopt(transfer->easy, CURLOPT_CLOSESOCKETDATA, transfer);
}

void transfer_trust(const struct transfer *transfer, const char *authorities)
{
	if (authorities == NULL)
		return;
	curl_easy_setopt(transfer->easy, CURLOPT_CAINFO, authorities);
	/* otherwise, libcurl also trusts those in the system's directory */
	curl_easy_setopt(transfer->easy, CURLOPT_CAPATH, NULL);
}

/* Advice to append to the message of libcurl or its TLS library. */
static const char *advice(const struct transfer *transfer)
{
	long verified = 0; /* OpenSSL's reason, or 0 */

	curl_easy_getinfo(transfer->easy, CURLINFO_SSL_VERIFYRESULT, &verified);
	if ((transfer->result == CURLE_PEER_FAILED_VERIFICATION && verified != 0) ||
	    transfer->result == CURLE_SSL_CACERT_BADFILE) /* no such file, as on a machine without
	                                                     ca-certificates */
		return "; name its authority: SEMLOCK_CACERT";
	if (strstr(transfer->error, "alert") != NULL &&
	    (strstr(transfer->error, "certificate") != NULL ||
		strstr(transfer->error, "unknown ca") != NULL))
		return "; the server may want a certificate: SEMLOCK_CERT, SEMLOCK_KEY";
	if (transfer->result == CURLE_SSL_CONNECT_ERROR)
		return "; is there TLS at this port?";
	return "";
}

static void collect(void)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(multi, &left)) != NULL) {
		/* the message is gone once its handle is removed */
		CURLcode result = message->data.result;
		struct transfer *transfer = NULL;
		/* get it before the handle is removed, which has none afterwards */
		curl_socket_t connection = CURL_SOCKET_BAD;
		size_t used;

		if (message->msg != CURLMSG_DONE ||
		    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer) !=
			CURLE_OK ||
		    transfer == NULL)
			continue;
		transfer->result = result;
		transfer->ended = true;
		transfer->running = false;
		transfer->cut_off = curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET,
					&connection) != CURLE_OK ||
		                    connection == CURL_SOCKET_BAD || hung_up(connection);
		curl_multi_remove_handle(multi, transfer->easy);
		if (result == CURLE_OK)
			continue;
		if (transfer->error[0] == '\0')
			snprintf(transfer->error, sizeof transfer->error, "%s",
			    curl_easy_strerror(result));
		used = strlen(transfer->error);
		snprintf(transfer->error + used, sizeof transfer->error - used, "%s",
		    advice(transfer));
	}
}

static bool either(const bool *flag, const bool *other)
{
	return (flag != NULL && *flag) || (other != NULL && *other);
}

/* One turn of the loop: drive all transfers, then wait for an event, for LONGEST ms at most.  There
 * must be a limit because libcurl 7.88 can hold back what it has read of an HTTP/2 answer until it
 * is called again, and no descriptor shows that.  What it holds back came with an event.  So the
 * longer ago the last event is, the longer a turn may be. */
static void turn(int64_t until, int longest, const bool *flag, const bool *other)
{
	struct curl_waitfd also[2];
	struct pollfd own[2];
	unsigned int n = 0;
	int running, milliseconds, ready = 0;

	curl_multi_perform(multi, &running);
	collect();
	if (either(flag, other))
		return;
	milliseconds = loop_prepare(own, until);
	for (int i = 0; i < 2; i++)
		if (own[i].fd >= 0)
			also[n++] = (struct curl_waitfd){own[i].fd, CURL_WAIT_POLLIN, 0};
	curl_multi_poll(multi, also, n,
	    milliseconds < 0 || milliseconds > longest ? longest : milliseconds, &ready);
	if (ready > 0)
		last_event = clock_boottime();
	protocol_pump();
}

/* A turn while we wait for no answer.  Within a second of an event, it takes a second at most, so
 * that another turn follows; after that, it lasts until something is due. */
static void idle_turn(int64_t until, const bool *flag, const bool *other)
{
	turn(until, clock_boottime() - last_event < SECOND ? 1000 : INT_MAX, flag, other);
}

void transfer_start(struct transfer *transfer)
{
	transfer->ended = false;
	transfer->server_hung_up = transfer->starved = false;
	transfer->connected = transfer->late = false;
	transfer->running = true;
	transfer->error[0] = '\0';
	curl_multi_add_handle(multi, transfer->easy);
}

/* The longest time that the next turn may take, in ms, if the last event was SINCE ns ago. */
static int answer_turn(int64_t since)
{
	int64_t ms = since / 4 / MILLISECOND;

	if (ms < FIRST_TURN_MS)
		return FIRST_TURN_MS;
	return ms < LONGEST_TURN_MS ? (int)ms : LONGEST_TURN_MS;
}

void transfer_drive(struct transfer *transfer, int64_t limit, int64_t until, const bool *abort)
{
	int64_t began = clock_boottime(), now = began;
	int64_t stalled = 0; /* time in which this process had no processor */

	last_event = began;
	while (now < until && !either(&transfer->ended, abort) &&
	       now - began - (stalled > 0 ? stalled : 0) < limit) {
		int longest = answer_turn(now - last_event);
		int64_t due = earlier(now + longest * MILLISECOND, until);

		turn(until, longest, &transfer->ended, abort);
		now = clock_boottime();
		stalled += (now > due ? now - due : 0) - LATE;
	}
	transfer->starved = stalled > 0;
}

void transfer_cut(struct transfer *transfer)
{
	curl_off_t connected = 0; /* µs that connecting took; 0: not connected */

	if (!transfer->running)
		return;
	curl_easy_getinfo(transfer->easy, CURLINFO_CONNECT_TIME_T, &connected);
	curl_multi_remove_handle(multi, transfer->easy);
	transfer->running = false;
	transfer->connected = connected > 0;
	transfer->late = transfer->connected || transfer->starved;
	snprintf(transfer->error, sizeof transfer->error, "no answer in time%s",
	    transfer->starved ? ": this machine is too busy" : "");
}

CURLcode transfer_run(struct transfer *transfer, int64_t until, const bool *abort)
{
	transfer_start(transfer);
	transfer_drive(transfer, INT64_MAX, until, abort);
	transfer_cut(transfer);
	return transfer->ended ? transfer->result : CURLE_OPERATION_TIMEDOUT;
}

void transfer_close(struct transfer *transfer)
{
	if (transfer->easy == NULL)
		return;
	if (transfer->running)
		curl_multi_remove_handle(multi, transfer->easy);
	curl_easy_cleanup(transfer->easy);
	*transfer = (struct transfer){.easy = NULL};
}

void transfer_wait(int64_t until, const bool *flag, const bool *other)
{
	while (clock_boottime() < until && !protocol_released() && !either(flag, other))
		idle_turn(until, flag, other);
}

void transfer_pause(int64_t until)
{
	while (clock_boottime() < until)
		idle_turn(until, NULL, NULL);
}
