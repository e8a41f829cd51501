/* SPDX-License-Identifier: MIT */
/* replay FILE... - gives the linked harness each file: as it is, every beginning of it, and with
 * every single byte replaced in turn.  Prints the number of inputs.  If an input fails, names its
 * file, and leaves the input in "crasher". */
#include <config.h>

#include <signal.h>
#include <unistd.h>

#include "fuzz.h"

enum { LONGEST = 1 << 20, MUTATED = 1500 };

static const char *name;
static const uint8_t *input;
static size_t length;
static unsigned long inputs;

static void too_much(int sig)
{
	FILE *crasher = fopen("crasher", "w");

	if (crasher != NULL) {
		fwrite(input, 1, length, crasher);
		fclose(crasher);
	}
	fprintf(stderr, "%s, %zu bytes of it or like it, now in ./crasher: signal %d\n", name,
	    length, sig);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void put(const uint8_t *bytes, size_t size)
{
	input = bytes;
	length = size;
	inputs++;
	LLVMFuzzerTestOneInput(bytes, size);
}

static void mutate(uint8_t *bytes, size_t size)
{
	static const uint8_t instead[] = {0, '\n', ' ', '0', '9', ':', '-', 0xff};

	for (size_t i = 0; i < size; i++) {
		uint8_t kept = bytes[i];

		put(bytes, i);
		for (size_t j = 0; j < sizeof instead; j++) {
			bytes[i] = instead[j];
			put(bytes, size);
		}
		bytes[i] = kept;
	}
}

static int replay(const char *path)
{
	static uint8_t bytes[LONGEST];
	FILE *file = fopen(path, "r");
	size_t size;

	if (file == NULL) {
		perror(path);
		return -1;
	}
	size = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	name = path;
	put(bytes, size);
	mutate(bytes, size < MUTATED ? size : MUTATED);
	return 0;
}

int main(int argc, char **argv)
{
	static const int wrong[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		signal(wrong[i], too_much);
	for (int i = 1; i < argc; i++) {
		alarm(60); /* a parser that does not end is as wrong as one that crashes */
		if (replay(argv[i]) != 0)
			return EXIT_FAILURE;
	}
	printf("%lu inputs\n", inputs);
	return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
