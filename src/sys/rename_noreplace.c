#include <config.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "sys/rename_noreplace.h"

#define NOREPLACE 1

int rename_noreplace(int directory, const char *from, const char *to)
{
	return (int)syscall(SYS_renameat2, directory, from, directory, to, NOREPLACE);
}
