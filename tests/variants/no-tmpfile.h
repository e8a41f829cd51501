/* A system whose files cannot be made without a name. */
#include <fcntl.h>
#undef O_TMPFILE
