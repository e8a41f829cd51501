/* locksmith/common/loop.h - sleeping, while semlock is listened to and the command is guarded. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_LOOP_H
#define SEMLOCK_LOCKSMITH_COMMON_LOOP_H

#include <poll.h>
#include <stdint.h>

/* Poll's timeout for the moment until: never long, for a suspended machine's clock jumps and poll
   does not count that time. */
int loop_milliseconds(int64_t until);

/* One turn: sleep until one of the COUNT (at most 4) descriptors FDS is ready, semlock says
   something, the guard has work, or the moment until (or a second) has come.  Fills in revents. */
void loop_turn(struct pollfd *fds, nfds_t count, int64_t until);

/* Waits until the moment given, or until semlock wants the lock released. */
void loop_wait(int64_t until);

/* Waits until the moment given, whatever semlock wants. */
void loop_pause(int64_t until);

#endif
