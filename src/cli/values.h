/* cli/values.h - what stands behind an option, as text, made into what it means.
 *
 * Each of these ends semlock with EXIT_USAGE, and a message that names the option and
 * the text, when the text makes no sense. */
#ifndef SEMLOCK_CLI_VALUES_H
#define SEMLOCK_CLI_VALUES_H

#include <stdint.h>
#include <sys/types.h>

#include "lock/method.h"

/* -m: the method of that name. */
const struct method *value_method(const char *name);

/* -w: nanoseconds.  A negative time ends semlock with NEGATIVE_STATUS. */
int64_t value_wait(const char *text, int negative_status);

/* OPTION, for the message: nanoseconds, more than none. */
int64_t value_time(const char *option, const char *text);

/* --on-lost: LOST_WARN, or a signal's number. */
int value_on_lost(const char *text);

/* -E: 0 to 255. */
int value_status(const char *text);

/* --run-timeout and the like (OPTION, for the message): nanoseconds, not negative. */
int64_t value_duration(const char *option, const char *text);

/* --signal and the like: a signal's number, from its name or number. */
int value_signal(const char *option, const char *text);

/* -j: 1 to SLOTS_MOST. */
unsigned value_slots(const char *text);

/* --mode: octal, up to 0777. */
mode_t value_mode(const char *text);

/* --fd and the like (OPTION, for the message): a descriptor's number, open or not. */
int value_fd(const char *option, const char *text);

/* --hold: a process's number, from 1. */
pid_t value_pid(const char *text);

/* --start, --length (OPTION, for the message): bytes, with the suffixes that flock(1) takes
 * (K, KiB: 1024; KB: 1000; up to E), and no more than MOST. */
off_t value_size(const char *option, const char *text, off_t most);

#endif
