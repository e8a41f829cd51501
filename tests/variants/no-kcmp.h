/* A system that does not tell whether two descriptors are the same, nor closes many at once. */
#include <sys/syscall.h>
#undef SYS_kcmp
#undef SYS_close_range
