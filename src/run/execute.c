#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/execute.h"
#include "sys/memory.h"

/* Where execvp() has found NAME: the first in PATH that may be executed. */
static char *found(char *name)
{
	const char *from = getenv("PATH"), *end;
	char *path = memory_lasting(PATH_MAX);

	if (strchr(name, '/') != NULL || from == NULL || path == NULL)
		return name;
	for (; *from != '\0'; from = *end == '\0' ? end : end + 1) {
		end = from + strcspn(from, ":");
		if ((size_t)(end - from) + strlen(name) + 2 > PATH_MAX)
			continue;
		memcpy(path, from, (size_t)(end - from));
		strcpy(stpcpy(path + (end - from), end == from ? "" : "/"), name);
		if (access(path, X_OK) == 0)
			return path;
	}
	return name;
}

/* A script without #! is the shell's: execvp() of musl leaves that to us.  Memory is taken here
 * alone, so that whoever starts a program has no need of it. */
static int execute_by_shell(char **argv)
{
	static char shell[] = "/bin/sh";
	size_t count = 1;
	char **words;

	while (argv[count] != NULL)
		count++;
	words = memory_lasting((count + 2) * sizeof *words);
	if (words == NULL)
		return ENOMEM;
	words[0] = shell;
	words[1] = found(argv[0]);
	memcpy(words + 2, argv + 1, count * sizeof *words);
	execv(shell, words);
	return ENOEXEC;
}

int execute(char **argv)
{
	execvp(argv[0], argv);
	return errno == ENOEXEC ? execute_by_shell(argv) : errno;
}
