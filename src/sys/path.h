/* sys/path.h - the parts of a path. */
#ifndef SEMLOCK_SYS_PATH_H
#define SEMLOCK_SYS_PATH_H

#include <limits.h>

/* The directory that the last component of PATH is in: ".", "/", or what of PATH stands before
 * that component, put into SPACE.  NULL with errno ENAMETOOLONG if that has no room. */
const char *path_directory(const char *path, char space[PATH_MAX]);

#endif
