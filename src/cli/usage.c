#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/usage.h"
#include "lock/method.h"
#include "methods/server/locksmith.h"
#include "report/error.h"
#include "report/exitcode.h"

static const char help[] =
    "Usage: semlock [OPTION...] LOCK COMMAND [ARG...]\n"
    "       semlock [OPTION...] LOCK -c 'SHELL COMMAND'\n"
    "       semlock [OPTION...] FD\n"
    "       semlock --hold [OPTION...] LOCK\n"
    "       semlock --who [--json] LOCK...\n"
    "       semlock --check LOCK\n"
    "Run COMMAND while holding LOCK, a file, a directory, or the URL of a lock on a\n"
    "server; or lock the open descriptor FD of the calling shell, and leave it so.\n"
    "\n"
    "How long to wait:\n"
    "  -n, --nb, --nonblock, --nonblocking\n"
    "                        not at all: fail at once\n"
    "  -w, --wait, --timeout=SECS\n"
    "                        so long at most: 10, .5, 1e1, 500ms, 9s, 2m, 1h, 1d\n"
    "  -E, --conflict-exit-code=N\n"
    "                        exit status when the lock is not to be had (1)\n"
    "      --replace[=SIG]   stop who holds it, by SIG (TERM), and take its place\n"
    "      --toggle[=SIG]    if it is held, stop who holds it, and do not run COMMAND\n"
    "\n"
    "Which lock:\n"
    "  -x, -e, --exclusive   nobody else at the same time (the default)\n"
    "  -s, --shared          together with other shared holders\n"
    "  -j, --slots=N         up to N holders at once; SEMLOCK_SLOT tells them apart\n"
    "  -f, --file=LOCK       this lock as well: all or none, and no deadlock; each\n"
    "                        with the -s or -x that stands before it\n"
    "      --name=NAME       instead of LOCK: the lock NAME in your own directory\n"
    "      --fd=N            instead of LOCK: the open descriptor N; COMMAND is run\n"
    "      --nested          if an outer semlock holds LOCK, run COMMAND under that\n"
    "      --mode=OCTAL      permissions of a lock file that is made\n"
    "      --rm              remove the lock file at the end, if nobody wants it\n"
    "\n"
    "How to lock:\n"
    "  -m, --method=METHOD   see below (flock; of a URL, its own)\n"
    "      --fcntl           the same as -m ofd\n"
    "      --start=BYTE, --length=BYTES\n"
    "                        a part of the file (0: to the end)\n"
    "      --init            with rename: make the token, if there is none\n"
    "      --stale=SECS      take a lock made of files over if its holder cannot be\n"
    "                        asked and gave no sign of life for so long; of an FTP\n"
    "                        directory, if it was empty for so long (600)\n"
    "      --ttl=SECS        lease of a lock on a server; each has its own default\n"
    "\n"
    "How to run COMMAND:\n"
    "  -c, --command STRING  behind LOCK: run STRING by $SHELL, else /bin/sh\n"
    "  -o, --close           what COMMAND leaves behind does not keep the lock\n"
    "  -F, --no-fork         become COMMAND instead of watching over it\n"
    "      --run-timeout=SECS\n"
    "                        end COMMAND after so long; exit status 124\n"
    "      --signal=SIG      by this signal (TERM)\n"
    "      --kill-after=SECS and by KILL so long after that; also with --replace\n"
    "      --on-lost=WHAT    if somebody takes a lock made of files away: warn, or\n"
    "                        a signal to COMMAND, such as term\n"
    "\n"
    "Without COMMAND:\n"
    "      --hold[=PID]      print OK once LOCK is held; let it go when standard\n"
    "                        input ends, or process PID\n"
    "  -u, --unlock          unlock FD\n"
    "      --who             who holds each LOCK, and who waits; take none of them\n"
    "      --json            the same for programs\n"
    "      --check           does a lock there really exclude?  Tries it\n"
    "\n"
    "What is said:\n"
    "  -q, --quiet           nothing about a lock that is busy\n"
    "  -v, --verbose         what happens\n"
    "      --status-fd=N     on descriptor N: a line for each event\n"
    "  -h, --help            this\n"
    "  -V, --version         the version\n"
    "\n";

static const char epilogue[] =
    "\n"
    "Exit status: COMMAND's own; 128+n if signal n ended it; 1, or -E's, if the lock\n"
    "is busy; 124 run timeout; 126, 127 COMMAND cannot be run; 64 usage; 65 cannot be\n"
    "locked; 66 cannot be opened; 69 not available; 70 internal; 71 system; 73 cannot\n"
    "be made; 76 lost; 77 not permitted.  All of this, and examples: semlock(1).\n";

static noreturn void end_output(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SYSTEM, "cannot write to standard output");
	exit(EXIT_SUCCESS);
}

static void print_methods(void)
{
	const struct method *method;

	puts("METHOD is one of these, with the options that go with it:");
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		printf("  %-9s%-3s%-3s%-8s%-3s%s\n", method->name,
		    (method->can & CAN_SHARE) != 0 ? "-s" : "",
		    (method->can & CAN_SLOTS) != 0 ? "-j" : "",
		    (method->can & CAN_RANGE) != 0 ? "--start" : "",
		    (method->can & CAN_FD) != 0 ? "FD" : "", method->what);
}

static int is_locksmith(const struct dirent *entry)
{
	return strncmp(entry->d_name, LOCKSMITH_PREFIX, strlen(LOCKSMITH_PREFIX)) == 0;
}

/* The shells' completions read this line. */
static void print_schemes(void)
{
	struct dirent **found;
	int count = scandir(locksmith_directory(), &found, is_locksmith, alphasort);

	printf("\nA URL is SCHEME://[USER@]HOST/NAME, and needs semlock-locksmith-SCHEME.\n"
	       "Installed for SCHEME:\n ");
	for (int i = 0; i < count; i++)
		printf(" %s", found[i]->d_name + strlen(LOCKSMITH_PREFIX));
	puts(count > 0 ? "" : " (none)");
}

void usage_help(void)
{
	fputs(help, stdout);
	print_methods();
	print_schemes();
	fputs(epilogue, stdout);
	end_output();
}

void usage_version(bool as_flock)
{
	printf("%s %s\n", as_flock ? "flock from semlock" : "semlock", PACKAGE_VERSION);
	end_output();
}
