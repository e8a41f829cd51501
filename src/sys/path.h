/* SPDX-License-Identifier: MIT */
/* sys/path.h - the parts of a path. */
#ifndef SEMLOCK_SYS_PATH_H
#define SEMLOCK_SYS_PATH_H

#include <limits.h>

/* PATH's directory: ".", "/", or PATH up to its last slash, put into SPACE.  NULL, with errno
 * ENAMETOOLONG, if SPACE is too small. */
const char *path_directory(const char *path, char space[PATH_MAX]);

#endif
