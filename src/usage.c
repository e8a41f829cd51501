#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "exitcode.h"
#include "methods/method.h"
#include "usage.h"

static const char help[] =
    "Usage: semlock [OPTION...] LOCK COMMAND [ARG...]\n"
    "       semlock [OPTION...] LOCK -c 'SHELL COMMAND'\n"
    "       semlock [OPTION...] FD\n"
    "       semlock --tether=FD [OPTION...] LOCK\n"
    "       semlock --hold [OPTION...] LOCK\n"
    "       semlock --who [--json] LOCK...\n"
    "       semlock --check LOCK\n"
    "Run COMMAND while holding LOCK, a file, a directory, or the URL of a lock on a server\n"
    "(ftp, ftpes, ftps, sftp://[USER@]HOST/PATH; etcd, etcds://[USER@]HOST[,HOST...]/NAME);\n"
    "or lock the open descriptor number FD of the calling shell, and leave it locked.\n"
    "\n"
    "Which lock:\n"
    "  -x, -e, --exclusive      nobody else at the same time (the default)\n"
    "  -s, --shared             together with other shared holders\n"
    "  -j, --slots=N            up to N holders at once; SEMLOCK_SLOT says which one it is\n"
    "  -f, --file=LOCK          this lock as well: all or none, and no deadlock; may be\n"
    "                           repeated, each with the -s or -x that stands before it\n"
    "      --name=NAME          instead of LOCK: the lock of that name in your own directory\n"
    "      --nested             if an outer semlock holds LOCK already, run COMMAND under that\n"
    "  -m, --method=METHOD      how to lock; see below\n"
    "      --fcntl              the same as -m ofd\n"
    "      --start=BYTE, --length=BYTES\n"
    "                           lock a part of the file (fcntl methods; 0: to the end)\n"
    "      --mode=OCTAL         permissions of a lock file that is created\n"
    "      --init               with -m rename: make the token, if there is none\n"
    "      --stale=SECS         with a method of files: take the lock over if its holder cannot\n"
    "                           be asked, and has given no sign of life for so long\n"
    "                           (FTP: if it is a directory without anything in it)\n"
    "      --ttl=SECS           lease of a lock on a server: etcd 15, others 60\n"
    "      --rm                 remove the lock file at the end, if nobody wants it\n"
    "\n"
    "How long to wait:\n"
    "  -n, --nb, --nonblock, --nonblocking\n"
    "                           not at all: fail at once\n"
    "  -w, --wait, --timeout=SECS\n"
    "                           so long at most: 10, .5, 1e1, 500ms, 2m, 1h, 1d\n"
    "  -i, --interval=SECS      FTP: time between two looks at a lock that is held (2)\n"
    "  -E, --conflict-exit-code=N\n"
    "                           exit status when the lock is not to be had (1)\n"
    "      --replace[=SIG]      stop who holds the lock by SIG (TERM), and take its place\n"
    "      --toggle[=SIG]       if it is held, stop who holds it, and do not run COMMAND\n"
    "      --unfair             do not queue behind those who came earlier\n"
    "\n"
    "How to run COMMAND:\n"
    "  -c, --command STRING     after LOCK: run STRING by $SHELL, else /bin/sh\n"
    "      --on-lost=WHAT       if somebody takes a lock made of files away: warn, or a signal to\n"
    "                           COMMAND (with --tether to the calling shell): term, kill ...\n"
    "  -o, --close              what COMMAND leaves behind does not keep the lock\n"
    "  -F, --no-fork            become COMMAND instead of watching over it\n"
    "      --run-timeout=SECS   end COMMAND after so long, by --signal=SIG (TERM), and by KILL\n"
    "                           so long after that: --kill-after=SECS; exit status 124\n"
    "      --hold[=PID]         no COMMAND: say OK on standard output once LOCK is held, and let\n"
    "                           it go when standard input ends, or process PID\n"
    "      --tether=FD          no COMMAND: LOCK is the calling shell's until it closes its\n"
    "                           descriptor FD, ends, or says semlock -u FD; any kind of LOCK\n"
    "      --fd=N               lock the open descriptor N, then run COMMAND\n"
    "\n"
    "  -u, --unlock             with FD: unlock it, and let go what is tied to it\n"
    "      --check LOCK         does a lock really exclude there, is that server fit for one?\n"
    "                           tries it, a line each\n"
    "      --who [--json] LOCK...   who holds each LOCK, and who waits, and take none of them\n"
    "      --status-fd=N        say what happens on descriptor N, one line per event\n"
    "  -q, --quiet              nothing on standard error about a lock that is busy\n"
    "  -v, --verbose            say on standard error what happens\n"
    "  -h, --help               print this\n"
    "  -V, --version            print the version\n"
    "\n";

static const char epilogue[] =
    "\n"
    "Exit status: COMMAND's own; 128+n if signal n ended it; 1 or -E when the lock is busy;\n"
    "64 usage; 65 cannot be locked; 66 cannot be opened; 69 no server; 71 system; 73 cannot be\n"
    "created; 76 lost; 77 not permitted; 126, 127 COMMAND cannot be run.  All of it is in semlock(1).\n";

static noreturn void finish(void)
{
	exit(fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_SYSTEM);
}

static void print_methods(void)
{
	const struct method *method;

	puts("METHOD is one of\n"
	     "                     -s   -j   --start  FD");
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		printf("  %-18s %-4s %-4s %-8s %-4s %s\n", method->name,
		    (method->can & CAN_SHARE) != 0 ? "yes" : "no",
		    (method->can & CAN_SLOTS) != 0 ? "yes" : "no",
		    (method->can & CAN_RANGE) != 0 ? "yes" : "no",
		    (method->can & CAN_FD) != 0 ? "yes" : "no", method->what);
}

void usage_help(void)
{
	fputs(help, stdout);
	print_methods();
	fputs(epilogue, stdout);
	finish();
}

void usage_version(bool as_flock)
{
	printf("%s %s\n", as_flock ? "flock from semlock" : "semlock", PACKAGE_VERSION);
	finish();
}
