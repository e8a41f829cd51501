/* semlock - run a command while holding a lock. */
#include <config.h>

#include <unistd.h>

int main(void)
{
	static const char usage[] = "usage: semlock [OPTION...] LOCK COMMAND [ARG...]\n";

	return write(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? 71 : 64;
}
