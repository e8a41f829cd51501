/* SPDX-License-Identifier: MIT */
/* cli/values.h - reads the values of options.  If TEXT is invalid, a function that reads it ends
 * the program with EXIT_USAGE and a message that quotes TEXT and OPTION (such as "-w"), unless its
 * comment says otherwise. */
#ifndef SEMLOCK_CLI_VALUES_H
#define SEMLOCK_CLI_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/method.h"

/* -m: the method called NAME. */
const struct method *value_method(const char *name);

/* -w: returns ns.  A negative time ends the program with NEGATIVE_STATUS. */
int64_t value_wait(const char *text, int negative_status);

/* Seconds, with an optional fraction and suffix.  Returns ns, at least LEAST (0 or 1). */
int64_t value_duration(const char *option, const char *text, int64_t least);

/* --on-lost: LOST_WARN, or a signal's number. */
int value_on_lost(const char *text);

/* A signal's number, from its name or number. */
int value_signal(const char *option, const char *text);

/* Is TEXT the name or the number of a signal that value_signal() takes? */
bool value_is_signal(const char *text);

/* The names of the signals that value_signal() knows, with SEPARATOR between them, into TEXT. */
void value_signal_names(char *text, size_t size, const char *separator);

/* A whole number from LEAST, which is not negative, to MOST.  The message calls it WHAT, such as
 * "exit status". */
long value_number(const char *option, const char *text, const char *what, long least, long most);

/* --release, --resume: the ID in TEXT.  TEXT is the ID itself, the line that --detach has printed
 * ("OK id=ID slot=0", "WAITING id=ID"), or what `read -r ok id` leaves of that ("id=ID slot=0").
 * The ID is not checked: any other text is returned up to its first blank. */
const char *value_hold(const char *text);

/* --mode: octal, up to 0777. */
mode_t value_mode(const char *text);

/* A descriptor's number, open or not. */
int value_fd(const char *option, const char *text);

/* A number of bytes, up to MOST, with the suffixes of flock(1) (K, KiB: 1024; KB: 1000; up
 * to E). */
off_t value_size(const char *option, const char *text, off_t most);

#endif
