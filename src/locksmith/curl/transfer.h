/* locksmith/curl/transfer.h - libcurl's transfers, run in one loop that also hears the core and guards the command.
 */
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
	bool cut_off; /* its connection had ended by then, or there was none */
	bool server_hung_up; /* where it is noted: a connection was closed that had ended by itself */
	char error[CURL_ERROR_SIZE]; /* libcurl's words for the result */
};

/* Once, before all else. 0, or -1 when libcurl cannot start. */
int transfer_init(void);

/* Makes the easy handle with what every transfer needs. 0 or -1 (no memory). */
int transfer_open(struct transfer *t);

/* Runs t to its end, but not beyond the moment until, nor after a background transfer has set
   *abort (NULL: none can). Returns its result; CURLE_OPERATION_TIMEDOUT when it was cut short, and
   the connection is closed then. */
CURLcode transfer_run(struct transfer *t, int64_t until, const bool *abort);

/* From now on t.server_hung_up is noted. t stays where it is until the end of the program. */
void transfer_note_hang_up(struct transfer *t);

/* Starts t in the background; it makes progress inside the other calls. */
void transfer_start(struct transfer *t);

/* Ends a background transfer, and frees the handle. Does nothing on a handle never opened. */
void transfer_close(struct transfer *t);

/* Waits until the moment given, or until the core wants the lock released, or until *flag is set by
   a callback of a background transfer or *other ended is set; flags may be NULL. */
void transfer_wait(int64_t until, const bool *flag, const bool *other);

/* Waits until the moment given, whatever the core wants. */
void transfer_pause(int64_t until);

#endif
