/* methods/file/filesystem.h - what kind of file system a lock is on. */
#ifndef SEMLOCK_METHODS_FILE_FILESYSTEM_H
#define SEMLOCK_METHODS_FILE_FILESYSTEM_H

#include <stdbool.h>

/* Is the one that FD is on this kernel's alone, so that its locks, and a record's boot and
 * PID, can be believed?  False for network file systems, FUSE, what a virtual machine shares
 * with its host, and whatever is not known. */
bool filesystem_is_local(int fd);

#endif
