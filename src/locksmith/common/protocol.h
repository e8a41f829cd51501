/* SPDX-License-Identifier: MIT */
/* locksmith/common/protocol.h - the lines between semlock and its helper; semlock-locksmith(7)
 * describes them. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_PROTOCOL_H
#define SEMLOCK_LOCKSMITH_COMMON_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/locksmith_words.h"

/* Write one line to standard output.  While the pipe is full, only WHO blocks: no other line may
 * delay a renewal.  So WAIT is dropped then, and all other lines are kept, 3 KB of them, and
 * written later; but of several HELD, only the last is kept. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Call this before the program ends: it waits until all kept lines but HELD are written, or the
 * reader has gone. */
void protocol_end(void);

/* Write "WAIT who" if who differs from the last one. */
void say_wait(const char *who);

/* The descriptor to poll for semlock's lines, or -1 after the end of input. */
int protocol_fd(void);

/* Read and handle semlock's lines, without blocking. */
void protocol_pump(void);

/* Call this when poll(2) fails.  If a signal interrupted poll(2), returns.  Any other error would
 * recur, and keep us from hearing semlock: then this reports the error and exits, and the lock
 * expires. */
void protocol_poll_failed(void);

/* True after START: the command runs, and the lock must be renewed.  Before START, semlock may be
 * stopped, so the lock is held for one lease at most. */
bool protocol_started(void);

/* The PID in START, of the process to name as the holder; 0: none yet. */
long protocol_command(void);

/* True after UNLOCK or the end of input: release the lock. */
bool protocol_released(void);

#endif
