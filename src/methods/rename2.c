#include <config.h>

#include <errno.h>
#include <unistd.h>
#ifdef HAVE_SYS_SYSCALL_H
#include <sys/syscall.h>
#endif

#include "methods/rename2.h"

#define NOREPLACE 1

int rename_noreplace(int directory, const char *from, const char *to)
{
#if HAVE_DECL_SYS_RENAMEAT2
	return (int)syscall(SYS_renameat2, directory, from, directory, to, NOREPLACE);
#else
	(void)directory;
	(void)from;
	(void)to;
	errno = ENOSYS;
	return -1;
#endif
}
