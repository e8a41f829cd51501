/* methods/kernel/fcntl.h - fcntl(2) record locks: of the open file description (ofd),
 * and of the process (posix). */
#ifndef SEMLOCK_METHODS_KERNEL_FCNTL_H
#define SEMLOCK_METHODS_KERNEL_FCNTL_H

#include <sys/types.h>

#include "lock/method.h"

extern const struct method method_ofd;
extern const struct method method_posix;

/* Lock or unlock (TYPE: F_WRLCK, F_RDLCK, F_UNLCK) one byte at OFFSET, by COMMAND (an fcntl
 * locking command).  TAKEN; BUSY when somebody else has it, or a signal came while
 * sleeping; FAILED with errno set. */
enum outcome fcntl_byte(int fd, int command, short type, off_t offset);

#endif
