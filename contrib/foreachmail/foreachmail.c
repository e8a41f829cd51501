/* foreachmail.c - run a command on each message of an mbox: the command line, and the loop. */
#include <config.h>

#include "commands.h"
#include "mbox.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static struct {
	bool headers_only, body_only, unquote, skip_internal, count;
} opt;

static struct how how = {.jobs = 1};

static const char usage_line[] =
    "usage: foreachmail [-HBuSekq] [-j N] COMMAND [ARG...] <MBOX\n"
    "       foreachmail [-HBuSekq] [-j N] -c STRING [ARG...] <MBOX\n"
    "       foreachmail -n [-S] <MBOX\n";

static const char help_text[] =
    "Run COMMAND once for each message of MBOX, with the message on its standard input.\n"
    "A COMMAND that stands alone and has blanks or other characters of the shell's in it\n"
    "is a command line for sh.\n"
    "\n"
    "  -c, --command STRING    run sh -c STRING; the ARGs are its $1, $2 ...\n"
    "  -H, --headers           give the header alone, with the blank line that ends it\n"
    "  -B, --body              give the body alone\n"
    "  -u, --unquote           take one > off lines of the body like `>From ' and `>>From '\n"
    "  -S, --skip-internal     pass over the message that mail programs keep notes in\n"
    "  -n, --count             run nothing, print the number of messages\n"
    "  -j, --jobs N            run up to N commands at once\n"
    "  -k, --keep-order        with -j: show their output in the order of the messages\n"
    "  -e, --stop-on-failure   stop at the first command that fails\n"
    "  -q, --quiet             say nothing about commands that fail\n"
    "  -h, --help              print this\n"
    "  -V, --version           print the version\n"
    "\n"
    "Exit status: 0; 1 when a command failed; 64 usage, 71 system, 73 temporary file,\n"
    "74 input or output, 126 and 127 COMMAND cannot be run or found.\n";

static void refuse(const char *why) __attribute__((noreturn));

static void refuse(const char *why)
{
	complain("%s; see foreachmail --help", why);
	exit(EX_USAGE);
}

/* Print `first` and `second` on standard output, and exit. */
static void print_and_exit(const char *first, const char *second)
{
	if (fputs(first, stdout) < 0 || fputs(second, stdout) < 0 || fflush(stdout)) {
		complain("standard output: %s", strerror(errno));
		exit(EX_IOERR);
	}
	exit(EX_OK);
}

static int number_of_jobs(const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 1 || n > MOST_JOBS) {
		complain("-j %s: not a number from 1 to %d", text, MOST_JOBS);
		exit(EX_USAGE);
	}
	return (int)n;
}

/* The words of the command that runs `line` in a shell, with its $1 ... at `args`. */
static char **shell_command(char *line, char **args, int n)
{
	static char sh[] = "/bin/sh", dash_c[] = "-c", zero[] = "sh";
	char **words = calloc((size_t)n + 5, sizeof *words);

	if (!words)
		give_up(EX_OSERR, "memory", strerror(errno));
	words[0] = sh;
	words[1] = dash_c;
	words[2] = line;
	words[3] = zero;
	for (int i = 0; i < n; i++)
		words[4 + i] = args[i];
	return words;
}

static bool is_for_the_shell(const char *word)
{
	return strpbrk(word, " \t\n|&;<>()$`\\\"'*?[]#~%!{}") != NULL;
}

static void read_options(int argc, char **argv)
{
	static const struct option names[] = {
	    {"command", required_argument, NULL, 'c'}, {"headers", no_argument, NULL, 'H'},
	    {"body", no_argument, NULL, 'B'}, {"unquote", no_argument, NULL, 'u'},
	    {"skip-internal", no_argument, NULL, 'S'}, {"count", no_argument, NULL, 'n'},
	    {"jobs", required_argument, NULL, 'j'}, {"keep-order", no_argument, NULL, 'k'},
	    {"stop-on-failure", no_argument, NULL, 'e'}, {"quiet", no_argument, NULL, 'q'},
	    {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'},
	    {NULL, 0, NULL, 0},
	};
	bool about_commands = false; /* some option was given that -n has no use for */
	char *line = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "+c:HBuSnj:keqhV", names, NULL)) != -1) {
		about_commands = about_commands || !strchr("Sn", c);
		switch (c) {
		case 'c':
			line = optarg;
			break;
		case 'H':
			opt.headers_only = true;
			break;
		case 'B':
			opt.body_only = true;
			break;
		case 'u':
			opt.unquote = true;
			break;
		case 'S':
			opt.skip_internal = true;
			break;
		case 'n':
			opt.count = true;
			break;
		case 'j':
			how.jobs = number_of_jobs(optarg);
			break;
		case 'k':
			how.keep_order = true;
			break;
		case 'e':
			how.stop_on_failure = true;
			break;
		case 'q':
			how.quiet = true;
			break;
		case 'h':
			print_and_exit(usage_line, help_text);
			break;
		case 'V':
			print_and_exit("foreachmail (" PACKAGE_NAME ") " PACKAGE_VERSION, "\n");
			break;
		default: /* getopt has printed the error */
			exit(EX_USAGE);
		}
	}
	argc -= optind;
	argv += optind;
	if (opt.headers_only && opt.body_only)
		refuse("-H and -B exclude each other");
	if (opt.headers_only && opt.unquote)
		refuse("-u works on the body, which -H leaves out");
	if (opt.count && (about_commands || argc))
		refuse("-n runs no command, and takes no option but -S");
	if (opt.count)
		return;
	if (!line && (argc == 0 || !*argv[0])) {
		(void)fputs(usage_line, stderr);
		exit(EX_USAGE);
	}
	if (line)
		how.command = shell_command(line, argv, argc);
	else if (argc == 1 && is_for_the_shell(argv[0]))
		how.command = shell_command(argv[0], NULL, 0);
	else
		how.command = argv;
}

/* A pipe of this program must never get a descriptor that a command takes for its output. */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
			if (fd == STDIN_FILENO) {
				complain("standard input: %s", strerror(errno));
				exit(EX_IOERR);
			}
			if (open("/dev/null", O_RDWR) < 0)
				exit(EX_OSERR);
		}
}

/* Sets the command's environment variables.  putenv(), since setenv() would keep a copy of each
 * value for ever. */
static void describe_message(const struct mbox *box, unsigned long number)
{
	static char number_is[64], offset_is[64], from_is[MBOX_FROM_SHOWN + 32];
	static char *const strings[] = {number_is, offset_is, from_is};

	(void)snprintf(number_is, sizeof number_is, "FOREACHMAIL_NUMBER=%lu", number);
	(void)snprintf(offset_is, sizeof offset_is, "FOREACHMAIL_OFFSET=%llu", box->offset);
	(void)snprintf(from_is, sizeof from_is, "FOREACHMAIL_FROM=%s", box->from);
	for (size_t i = 0; number == 1 && i < sizeof strings / sizeof strings[0]; i++)
		if (putenv(strings[i]))
			give_up(EX_OSERR, "memory", strerror(errno));
}

/* Returns false when no more messages are wanted. */
static bool run_on_message(struct mbox *box, unsigned long number)
{
	struct mbox_piece piece;
	int r;

	describe_message(box, number);
	message_open(number);
	while ((r = mbox_piece(box, &piece)) > 0) {
		if (piece.header ? !opt.body_only : !opt.headers_only)
			message_feed(piece.data, piece.size);
	}
	if (r < 0)
		give_up(EX_IOERR, "standard input", strerror(errno));
	return message_close();
}

/* Returns the number of messages. */
static unsigned long for_each_message(struct mbox *box)
{
	unsigned long number = 0;
	int r, skip = 0;

	while ((r = mbox_next(box)) > 0) {
		if (opt.skip_internal)
			skip = mbox_has_field(box, "Subject",
			    "DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA");
		if (skip < 0)
			break;
		if (skip)
			continue;
		number++;
		if (!opt.count && !run_on_message(box, number))
			return number;
	}
	if (r < 0 || skip < 0)
		give_up(EX_IOERR, "standard input", strerror(errno));
	return number;
}

int main(int argc, char **argv)
{
	static struct mbox box;
	char number[32];

	occupy_standard_descriptors();
	read_options(argc, argv);
	commands_start(&how);
	mbox_start(&box, STDIN_FILENO, opt.unquote, wait_to_read);
	(void)snprintf(number, sizeof number, "%lu\n", for_each_message(&box));
	if (opt.count)
		print_and_exit(number, "");
	return commands_finish();
}
