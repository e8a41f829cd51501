/* methods/kernel/kernel_methods.h - flock(2), and fcntl(2) record locks in their two kinds: of the open
 * file description (ofd), and of the process (posix). */
#ifndef SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H
#define SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lock/method.h"

extern const struct method method_flock;
extern const struct method method_ofd;
extern const struct method method_posix;

/* A method's owned.  Only on NFS the system is asked. */
bool kernel_lock_owned(struct lock *lock);

/* Lock or unlock (TYPE: F_WRLCK, F_RDLCK, F_UNLCK) the byte at OFFSET of FD by COMMAND, an fcntl(2)
 * locking command.  BUSY: held by another process, or a signal came; FAILED: with errno set. */
enum outcome fcntl_byte(int fd, int command, short type, off_t offset);

#endif
