/* SPDX-License-Identifier: MIT */
/* locksmith/common/protocol.h - the lines between semlock and its helper; semlock-locksmith(7)
 * describes them. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_PROTOCOL_H
#define SEMLOCK_LOCKSMITH_COMMON_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/locksmith_words.h"

/* Write one line to standard output.  Only WHO may block.  For the others, so that the heartbeat
 * goes on, a full pipe means: WAIT is dropped; the rest, but of HELD only the last, are kept and
 * written later. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At the end: wait until all kept lines but HELD are written, or the reader has gone. */
void protocol_end(void);

/* Write "WAIT who" if who differs from the last one. */
void say_wait(const char *who);

/* The descriptor to poll for semlock's lines, or -1 after the end of input. */
int protocol_fd(void);

/* Read and handle semlock's lines, without blocking. */
void protocol_pump(void);

/* Call this when poll(2) fails.  Returns if a signal interrupted it.  Any other error would recur,
 * and semlock would not be heard: reports it and exits.  The lock expires. */
void protocol_poll_failed(void);

/* True after START: the command runs, and the lock is to be renewed.  Before START, semlock may be
 * stopped, and the lock is not held for it beyond one lease. */
bool protocol_started(void);

/* The PID in START, of the process to name as the holder; 0: none yet. */
long protocol_command(void);

/* True after UNLOCK or the end of input: release the lock. */
bool protocol_released(void);

#endif
