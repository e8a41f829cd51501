/* A system without process descriptors: cc -include this. */
#include <sys/syscall.h>
#undef SYS_pidfd_open
#undef SYS_pidfd_send_signal
