/* owners/kernel_owners.h - who holds a kernel lock. */
#ifndef SEMLOCK_OWNERS_KERNEL_OWNERS_H
#define SEMLOCK_OWNERS_KERNEL_OWNERS_H

#include "owners/owners.h"
#include "owners/proc_snapshot.h"

/* Add those who hold it to FOUND, which is empty, and mark their lines in SNAPSHOT as accounted
 * for.  A watcher and its command, and whatever the command has started, are one holder. */
void kernel_owners_add(struct owners *found, struct proc_snapshot *snapshot, unsigned kinds);

#endif
