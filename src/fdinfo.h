/* fdinfo.h - what the kernel says of a descriptor of ours: which lock it carries. */
#ifndef SEMLOCK_FDINFO_H
#define SEMLOCK_FDINFO_H

struct lock;

enum fdinfo_mode { FDINFO_NONE, FDINFO_SHARED, FDINFO_EXCLUSIVE };

/* The lock of LOCK's kind that LOCK->fd carries.  FDINFO_NONE also where there is no
 * /proc to ask. */
enum fdinfo_mode fdinfo_held(const struct lock *lock);

#endif
