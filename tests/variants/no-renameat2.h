/* A system that cannot rename without replacing. */
#include <sys/syscall.h>
#undef SYS_renameat2
