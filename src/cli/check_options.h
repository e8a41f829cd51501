/* SPDX-License-Identifier: MIT */
/* cli/check_options.h - which options go together, and with which method (rules.def). */
#ifndef SEMLOCK_CLI_CHECK_OPTIONS_H
#define SEMLOCK_CLI_CHECK_OPTIONS_H

#include "cli/reading.h"
#include "cli/request.h"

/* Refuse what REQUEST must not ask for, options that contradict each other or that its method
 * cannot honour: end the program with EXIT_USAGE, and a message. */
void options_check(const struct request *request, const struct reading *reading);

#endif
