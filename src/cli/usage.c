#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/reading.h"
#include "lock/method.h"
#include "methods/server/locksmith.h"
#include "report/error.h"
#include "report/exitcode.h"

static const char help[] =
    "Usage: semlock [OPTION...] LOCK COMMAND [ARG...]\n"
    "       semlock [OPTION...] LOCK -c 'SHELL COMMAND'\n"
    "       semlock [OPTION...] FD\n"
    "       semlock --hold [OPTION...] LOCK\n"
    "       semlock --who [--json] [LOCK...]\n"
    "       semlock --check LOCK\n"
    "Run COMMAND while holding LOCK: a file, a directory, or a URL.  Or lock FD, an\n"
    "open descriptor of the calling shell.\n"
    "How long to wait:\n"
    "  -n, --nb, --nonblock, --nonblocking  do not wait: fail at once\n"
    "  -w, --wait, --timeout=SECS  wait at most SECS: 10, .5, 1e1, 500ms, 10s, 2m, 1h\n"
    "      --queue-max=N      wait only if fewer than N others wait\n"
    "  -E, --conflict-exit-code=N  exit status if the lock is busy (default: 1)\n"
    "      --replace[=SIG]    stop the holder (default: TERM), and take its place\n"
    "      --toggle[=SIG]     if held, stop the holder, and do not run COMMAND\n"
    "Which lock:\n"
    "  -x, -e, --exclusive    exclude all other holders (default)\n"
    "  -s, --shared           admit other shared holders\n"
    "  -j, --slots=N          admit N holders; SEMLOCK_SLOT numbers them from 0\n"
    "  -f, --file=LOCK        take this lock as well: all or none, without deadlock\n"
    "      --name=NAME        in place of LOCK: the lock NAME in your own directory\n"
    "      --fd=N             in place of LOCK: the open descriptor N\n"
    "      --nested           run COMMAND under the lock of an outer semlock\n"
    "      --mode=OCTAL       permissions of a lock file that is created\n"
    "      --rm               remove the lock file at the end, if it is not in use\n"
    "How to lock:\n"
    "  -m, --method=METHOD    one of those below (default: flock)\n"
    "      --fcntl            the same as -m ofd\n"
    "      --start=BYTE, --length=BYTES  a part of the file (length 0: to its end)\n"
    "      --init             with rename: create the token, if there is none\n"
    "      --stale=SECS       take over from a holder without a sign of life for SECS\n"
    "      --ttl=SECS         lease of a lock on a server\n"
    "How to run COMMAND:\n"
    "  -c, --command STRING   after LOCK: run STRING with $SHELL, or /bin/sh\n"
    "  -o, --close            do not let COMMAND inherit the lock\n"
    "  -F, --no-fork          become COMMAND: no second process\n"
    "      --min-hold=SECS    keep LOCK for SECS, also if COMMAND ends sooner\n"
    "      --run-timeout=SECS  end COMMAND after SECS; exit status 124\n"
    "      --signal=SIG       the signal of --run-timeout (default: TERM)\n"
    "      --kill-after=SECS  KILL, SECS after that signal; also with --replace\n"
    "      --on-lost=WHAT     if a lock made of files is removed: warn, or signal SIG\n"
    "Without COMMAND:\n"
    "      --hold[=PID]       print OK; hold LOCK until end of input, or of PID\n"
    "  -u, --unlock           unlock FD\n"
    "      --who              print holders and waiters of LOCK, or of all locks of\n"
    "                         semlocks here; with --json, as JSON\n"
    "      --check            try whether a lock there excludes\n"
    "What is said:\n"
    "  -q, --quiet            nothing about a busy lock\n"
    "  -v, --verbose          what happens\n"
    "      --status-fd=N      a line for each event, on descriptor N\n"
    "  -h, -V, --help, --version  this text; the version\n";

static const char epilogue[] =
    "Exit status: COMMAND's own, 128+n if signal n ended it; 1 (-E): busy; 124: run\n"
    "timeout; 126, 127: COMMAND cannot be run; 64 usage, 65 not lockable, 66 cannot\n"
    "open, 69 unavailable, 70 internal, 71 system, 73 cannot create, 76 lost, 77 not\n"
    "permitted.  More, with examples: semlock(1).\n";

static void print_methods(void)
{
	const struct method *method;
	bool of_files = false;

	printf("METHOD:");
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		if (!of_files && (method->can & LEAVES_RECORD) != 0) {
			of_files = true;
			printf("; made of files:");
		}
		printf(" %s", method->name);
	}
	putchar('\n');
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

	printf("URL: SCHEME://[USER@]HOST/NAME, by semlock-locksmith-SCHEME.\n"
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
	end_output(EXIT_SUCCESS);
}

void usage_version(bool as_flock)
{
	printf("%s %s\n", as_flock ? "flock from semlock" : "semlock", PACKAGE_VERSION);
	end_output(EXIT_SUCCESS);
}
