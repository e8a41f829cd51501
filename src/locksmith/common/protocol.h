/* locksmith/common/protocol.h - the lines between semlock and its locksmith; semlock-locksmith(7) describes them. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_PROTOCOL_H
#define SEMLOCK_LOCKSMITH_COMMON_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

enum { PROTOCOL_VERSION = 1 };

/* Writes one line to standard output. A reader that is gone or does not read never blocks the
   caller: the heartbeat matters more than the line. WAIT is dropped then; what else there is, and of
   HELD the last, is written when there is room. WHO and CHECK wait for it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At the end: waits until what had no room is written, or nobody is there to read it. */
void protocol_end(void);

/* "WAIT who", but only when who differs from the last one said. */
void say_wait(const char *who);

/* "OK ...". token < 0: the method has no fencing token; slot < 0: no slots. Times in nanoseconds.
 */
void say_ok(int64_t fencing_token, int slot, int64_t lease, int64_t deadline);

/* The descriptor to poll for the core's lines, or -1 after the end of input. */
int protocol_fd(void);

/* Reads what the core has sent, without blocking, and acts on it. */
void protocol_pump(void);

/* True after UNLOCK or the end of input: let the lock go. */
bool protocol_released(void);

#endif
