/* SPDX-License-Identifier: MIT */
/* cli/check_options.h - which options can be combined, and with which method (rules.def). */
#ifndef SEMLOCK_CLI_CHECK_OPTIONS_H
#define SEMLOCK_CLI_CHECK_OPTIONS_H

#include "cli/reading.h"
#include "cli/request.h"

/* If options contradict each other, or REQUEST's method cannot honour one, end the program with
 * EXIT_USAGE and a message. */
void options_check(const struct request *request, const struct reading *reading);

#endif
