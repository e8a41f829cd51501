/* SPDX-License-Identifier: MIT */
/* locksmith/common/options.h - the helper's command line. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_OPTIONS_H
#define SEMLOCK_LOCKSMITH_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locksmith/common/url.h"
#include "report/error.h"

enum action { ACTION_LOCK, ACTION_WHO, ACTION_HELP, ACTION_VERSION };

enum lease_mode { LEASE_EXCLUSIVE = 'x', LEASE_SHARED = 's', LEASE_SLOTS = 'n' };

struct options {
	enum action action;
	enum lease_mode mode;
	unsigned int slots;     /* LEASE_SLOTS: how many may hold at once */
	unsigned int queue_max; /* wait only if fewer others wait; 0: no limit */
	int64_t ttl;            /* nanoseconds, like all times here; 0: the engine's default */
	/* ftp: age at which a lock directory without a sign of its holder is removed; 0: never */
	int64_t stale;
	bool stale_given;
	int64_t interval; /* between two requests of a waiter that the server does not wake */
	bool no_wait;
	int64_t wait;      /* how long to wait for the lock, or NEVER */
	int64_t until;     /* when the wait is over, on clock_boottime()'s clock */
	int64_t answer_by; /* when to give up on a silent server: at UNTIL or a little later */
	long pid;          /* see options_pid() */
	const char *note;  /* shown to others, "" if none */
	const char *url_text;
	struct url url; /* filled in by the engine */
};

/* "exclusive", "shared" or "slots". */
const char *lease_mode_name(enum lease_mode mode);

/* The process that others see as the holder or waiter: semlock, and from START on the command. */
long options_pid(const struct options *options);

/* Write into TEXT (SIZE bytes) what others are told about this holder or waiter: the fields of a
 * WAIT line, from pid= on. */
void options_holder(const struct options *options, char *text, size_t size);

/* Read argv.  Returns 0, or -1 with ERROR filled (ERROR_USAGE). */
int options_parse(int argc, char **argv, struct options *options, struct error *error);

/* Print the options, for --help; TTL, in nanoseconds, is the lease that the engine takes without
 * --ttl. */
void options_print_help(int64_t ttl);

#endif
