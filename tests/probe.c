/* probe - the one C helper of the tests; each sub-command is a deterministic stand-in for a sleep. */
#include <config.h>

int main(void)
{
	return 64;
}
