/* SPDX-License-Identifier: MIT */
/* methods/kernel/kernel_methods.h - flock(2), and fcntl(2) record locks in their two kinds: of the
 * open file description (ofd), and of the process (posix). */
#ifndef SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H
#define SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H

#include "methods/kernel/lockfile.h"

extern const struct method method_flock;
extern const struct method method_ofd;
extern const struct method method_posix;

/* For every method of kernel locks. */
#define KERNEL_METHOD_FUNCTIONS \
	.family = OF_KERNEL, .open = kernel_open, .idle = kernel_idle, \
	.current = lockfile_current, .owned = kernel_lock_owned, .release = kernel_release, \
	.remove = lockfile_remove, .take_slot = kernel_take_slot, .drop_slot = kernel_drop_slot

/* ---- fcntl.c ---- */

/* A method's take_slot and drop_slot.  Slot N is a record lock on byte N of the range or, with
 * flock, on a byte beyond any program's data. */
enum outcome kernel_take_slot(struct lock *lock, unsigned slot, enum wait wait,
    struct error *error);
void kernel_drop_slot(struct lock *lock, unsigned slot);

#endif
