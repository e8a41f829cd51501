/* hold.h - --hold: the command that does nothing but hold. */
#ifndef SEMLOCK_HOLD_H
#define SEMLOCK_HOLD_H

/* In the process that stands for the command: say OK on standard output, and end when standard
 * input does, or the process that started semlock: CONTEXT is its struct caller.  Whoever cannot
 * hear the OK has no lock.  Does not return. */
void hold_until_end(void *context);

#endif
