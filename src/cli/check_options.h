/* cli/check_options.h - which options go together, and with which method. */
#ifndef SEMLOCK_CLI_CHECK_OPTIONS_H
#define SEMLOCK_CLI_CHECK_OPTIONS_H

#include "cli/request.h"

/* Choose REQUEST's method, and end the program with EXIT_USAGE, and a message, if an option cannot be
 * honoured: none is ignored. */
void check_options(struct request *request, const struct reading *reading);

#endif
