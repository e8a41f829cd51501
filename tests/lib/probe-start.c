/* SPDX-License-Identifier: MIT */
/* probe-start.c - starts a command with signals, descriptors or limits that a parent may leave. */
#include <config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "probe.h"

/* Calls EACH with the words between ARGV[0] and "--"; returns the command behind "--". */
static char **before_dashes(char **argv, void (*each)(const char *))
{
	for (argv++; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		each(*argv);
	if (*argv == NULL || argv[1] == NULL)
		misuse("with-... WORDS... -- COMMAND...");
	return argv + 1;
}

static void block(const char *name)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal_number(name));
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void ignore(const char *name)
{
	signal(signal_number(name), SIG_IGN);
}

static void restore_default(const char *name)
{
	signal(signal_number(name), SIG_DFL);
}

static void close_fd(const char *name)
{
	close((int)number(name));
}

/* with-mask SIGNALS... -- COMMAND...: with these signals blocked. */
int cmd_with_mask(int argc, char **argv)
{
	(void)argc;
	become(before_dashes(argv, block));
}

/* with-ignored SIGNALS... -- COMMAND...: with these signals ignored. */
int cmd_with_ignored(int argc, char **argv)
{
	(void)argc;
	become(before_dashes(argv, ignore));
}

/* with-default SIGNALS... -- COMMAND...: a shell's "&" ignores INT and QUIT; this undoes it. */
int cmd_with_default(int argc, char **argv)
{
	(void)argc;
	become(before_dashes(argv, restore_default));
}

/* with-closed FDS... -- COMMAND...: with these descriptors closed. */
int cmd_with_closed(int argc, char **argv)
{
	(void)argc;
	become(before_dashes(argv, close_fd));
}

/* rlimit-nofile N -- COMMAND...: with a limit of N descriptors. */
int cmd_rlimit_nofile(int argc, char **argv)
{
	struct rlimit limit;

	if (argc < 4 || strcmp(argv[2], "--") != 0)
		misuse("rlimit-nofile N -- COMMAND...");
	limit.rlim_cur = limit.rlim_max = (rlim_t)number(argv[1]);
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		fail("cannot limit", "descriptors");
	become(argv + 3);
}
