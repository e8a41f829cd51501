/* SPDX-License-Identifier: MIT */
/* methods/table.h - the list of methods, except those for servers (methods/server/server.h). */
#ifndef SEMLOCK_METHODS_TABLE_H
#define SEMLOCK_METHODS_TABLE_H

#include "lock/method.h"

/* The method called NAME, or NULL. */
const struct method *method_named(const char *name);

/* The N-th method, from 0; NULL past the last. */
const struct method *method_nth(unsigned n);

#endif
