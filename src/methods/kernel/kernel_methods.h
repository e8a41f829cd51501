/* methods/kernel/kernel_methods.h - flock(2), and fcntl(2) record locks in their two kinds: of the open
 * file description (ofd), and of the process (posix). */
#ifndef SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H
#define SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H

#include <stdbool.h>

#include "lock/method.h"

extern const struct method method_flock;
extern const struct method method_ofd;
extern const struct method method_posix;

/* If LOCK was taken, is it still ours?  Only on NFS the system is asked. */
bool kernel_lock_owned(struct lock *lock);

/* A method's take_slot and drop_slot: a record lock on a byte of the range, or beyond any program's data. */
enum outcome kernel_take_slot(struct lock *lock, unsigned slot, enum wait wait, struct error *error);
void kernel_drop_slot(struct lock *lock, unsigned slot);

#endif
