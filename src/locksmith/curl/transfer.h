/* SPDX-License-Identifier: MIT */
/* locksmith/curl/transfer.h - libcurl's transfers, in a loop that also reads semlock's lines. */
#ifndef SEMLOCK_LOCKSMITH_CURL_TRANSFER_H
#define SEMLOCK_LOCKSMITH_CURL_TRANSFER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct transfer {
	CURL *easy;
	bool running;
	bool ended; /* it ran and is over; result is its outcome */
	CURLcode result;
	bool cut_off;        /* at its end the connection was closed, or there was none */
	bool starved;        /* this process had too little processor time to hear of an answer */
	bool connected;      /* it had connected when transfer_cut() ended it */
	bool late;           /* it had connected, or may have: CONNECTED or STARVED */
	bool server_hung_up; /* after transfer_note_hang_up: the server has closed the connection */
	char error[CURL_ERROR_SIZE]; /* libcurl's message for the result */
};

/* Make the easy handle with the settings of all transfers.  Returns 0, or -1: libcurl does not
 * start, or no memory. */
int transfer_open(struct transfer *transfer);

/* From now on, trust the certificate authorities in the file AUTHORITIES, and no others.  NULL: the
 * system's. */
void transfer_trust(const struct transfer *transfer, const char *authorities);

/* Drive TRANSFER, which was started, until one of these: it ends; a background transfer has set
 * *ABORT (NULL: none can); LIMIT ns have passed; or the moment UNTIL comes.  LIMIT does not count
 * time for which this process got no processor, because then an answer may have come that it could
 * not read. */
void transfer_drive(struct transfer *transfer, int64_t limit, int64_t until, const bool *abort);

/* End TRANSFER if it still runs; then TRANSFER->error says that no answer came in time. */
void transfer_cut(struct transfer *transfer);

/* Run TRANSFER to its end, but not beyond the moment UNTIL, nor after a background transfer has set
 * *ABORT (NULL: none can).  Returns its result, or CURLE_OPERATION_TIMEDOUT if it was cut short;
 * then the connection is closed. */
CURLcode transfer_run(struct transfer *transfer, int64_t until, const bool *abort);

/* From now on, note in TRANSFER->server_hung_up whether the server closed the connection.  TRANSFER
 * must stay at its address until the program ends. */
void transfer_note_hang_up(struct transfer *transfer);

/* Start TRANSFER in the background.  It is driven by later calls for any transfer. */
void transfer_start(struct transfer *transfer);

/* End a background transfer, and free the handle; do nothing if it was never opened. */
void transfer_close(struct transfer *transfer);

/* Wait until the moment UNTIL, until protocol_released(), or until a background transfer has set
 * *FLAG or *OTHER; both pointers may be NULL. */
void transfer_wait(int64_t until, const bool *flag, const bool *other);

/* Wait until the moment UNTIL, even after protocol_released(). */
void transfer_pause(int64_t until);

#endif
