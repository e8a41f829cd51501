/* hold.h - --hold: the command that does nothing but hold. */
#ifndef SEMLOCK_HOLD_H
#define SEMLOCK_HOLD_H

#include <stdnoreturn.h>

/* In the process that stands for the command: say OK on standard output, and end when standard
 * input does.  Whoever cannot hear the OK has no lock. */
noreturn void hold_until_end(void);

#endif
