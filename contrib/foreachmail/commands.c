/* commands.c - the commands that run, and the message that is passed to one of them.
 *
 * Signals are blocked, save inside pselect() and sigsuspend(), the only places that sleep: no signal
 * can come between a look at `caught' and a system call that waits. */
#include <config.h>

#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

extern char **environ;

enum { NO_FD = -1 };

static const int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

static struct how how;

static struct job {
	unsigned long number; /* of its message; 0: this place is free */
	pid_t pid;            /* 0: it has ended */
	int out;              /* keep_order: the file that is its standard output */
} jobs[MOST_JOBS];

static struct {
	unsigned long number;
	int read_end, write_end; /* of the pipe; or both the same file */
	bool unwanted;           /* the command has closed its input */
} message = {0, NO_FD, NO_FD, false};

static int running;                  /* jobs with a pid */
static unsigned long next_shown = 1; /* keep_order: the message whose output comes next */
static int outcome = EX_OK;          /* what this program will return */
static bool stop;                    /* open no further message */
static bool ending;                  /* failures of commands are no longer reported */
static sigset_t mask_at_start, mask_asleep, reset_in_command;
static volatile sig_atomic_t caught, caught_from_terminal, child_ended;

void complain(const char *format, ...)
{
	char line[1024] = "foreachmail: ";
	size_t n = strlen(line);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line + n, sizeof line - n - 1, format, args);
	va_end(args);
	n = strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0) /* one write: commands write there as well */
		return;                        /* no reader is left */
}

/* ---- signals ---- */

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig == SIGCHLD) {
		child_ended = 1;
		return;
	}
	caught = sig;
	/* The terminal has sent ^C to the commands as well: do not send it again. */
	caught_from_terminal = info->si_code == SI_KERNEL;
}

/* A signal that was ignored from the start (nohup, or & in a script) stays ignored. */
static void set_up_signals(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = on_signal}, before;
	sigset_t ours;

	sigfillset(&action.sa_mask);
	sigemptyset(&ours);
	for (size_t i = 0; i < sizeof ending_signals / sizeof ending_signals[0]; i++) {
		sigaction(ending_signals[i], NULL, &before);
		if (before.sa_handler == SIG_IGN)
			continue;
		sigaction(ending_signals[i], &action, NULL);
		sigaddset(&ours, ending_signals[i]);
	}
	sigaction(SIGCHLD, &action, NULL);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, &mask_at_start);
	mask_asleep = mask_at_start;
	sigdelset(&mask_asleep, SIGCHLD);

	/* In this program, EPIPE is no error; for the commands SIGPIPE keeps its action. */
	sigemptyset(&reset_in_command);
	sigaction(SIGPIPE, NULL, &before);
	if (before.sa_handler != SIG_IGN)
		sigaddset(&reset_in_command, SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
}

static void tell_commands(int sig)
{
	for (int i = 0; i < how.jobs; i++)
		if (jobs[i].pid)
			kill(jobs[i].pid, sig);
}

/* The command gets no more of its message. */
static void close_pipe(void)
{
	if (message.write_end != NO_FD)
		close(message.write_end);
	if (message.read_end != NO_FD && message.read_end != message.write_end)
		close(message.read_end);
	message.read_end = message.write_end = NO_FD;
}

static void reap(void);

/* Ends by the signal `sig`, when the running commands have had it as well and have ended. */
static void end_by(int sig)
{
	const struct rlimit no_core = {0, 0};
	sigset_t only;

	ending = true;
	caught = sig;
	while (running) {
		if (caught && !caught_from_terminal)
			tell_commands(caught);
		caught = 0;
		close_pipe(); /* only now: a command must not take a part of a message for the whole */
		reap();
		if (running)
			sigsuspend(&mask_asleep);
	}
	setrlimit(RLIMIT_CORE, &no_core); /* a core dump of this program would show nothing */
	signal(sig, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, sig);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	kill(getpid(), sig);
	_exit(128 + sig); /* not reached */
}

static void obey_signals(void)
{
	if (caught)
		end_by(caught);
}

/* Sleeps until a command ends, or a signal ends this program. */
static void wait_for_command(void)
{
	if (!child_ended)
		sigsuspend(&mask_asleep);
	obey_signals();
	reap();
}

/* Sleeps until `fd` can be read or written.  Does not return when a command ends: the caller's next
 * call could sleep, with signals blocked. */
static void wait_for_fd(int fd, bool to_write)
{
	fd_set set;
	int ready;

	if (fd >= FD_SETSIZE)
		give_up(EX_OSERR, "too many open files", "no way to wait for another");
	do {
		FD_ZERO(&set);
		FD_SET((unsigned)fd, &set); /* the macro of musl counts in unsigned */
		ready = pselect(fd + 1, to_write ? NULL : &set, to_write ? &set : NULL, NULL, NULL,
		    &mask_asleep);
		if (ready < 0 && errno != EINTR)
			give_up(EX_OSERR, "pselect", strerror(errno));
		obey_signals();
		if (child_ended && !to_write)
			reap(); /* slow input must not delay its failure or output */
	} while (ready < 0);
}

void wait_to_read(int fd)
{
	wait_for_fd(fd, false);
}

void give_up(int status, const char *what, const char *why)
{
	complain("%s: %s", what, why);
	ending = true;
	if (how.jobs == 1 && message.write_end != NO_FD)
		tell_commands(SIGTERM);
	close_pipe();
	reap();
	while (running)
		wait_for_command();
	exit(status);
}

/* ---- files ---- */

/* A file without a name, in $TMPDIR or /tmp. */
static int nameless_file(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd, n;

	if (!dir || !*dir)
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd; /* if the file system has no O_TMPFILE: create and unlink */
	n = snprintf(path, sizeof path, "%s/foreachmail.XXXXXX", dir);
	if (n < 0 || (size_t)n >= sizeof path)
		give_up(EX_CANTCREAT, dir, strerror(ENAMETOOLONG));
	fd = mkstemp(path);
	if (fd < 0)
		give_up(EX_CANTCREAT, dir, strerror(errno));
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	unlink(path);
	return fd;
}

/* Writes all of it.  Returns false with errno set on failure (EPIPE: no reader). */
static bool write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EAGAIN) {
			wait_for_fd(fd, true);
		} else if (n < 0 && errno != EINTR) {
			return false;
		} else if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
	return true;
}

/* Copy what is in `from` to the file `to`; false with errno set when that fails. */
static bool copy_to_file(int from, int to)
{
	char block[16 * 1024];
	ssize_t n;

	while ((n = read(from, block, sizeof block)) > 0)
		if (!write_all(to, block, (size_t)n))
			return false;
	return n == 0 || errno == EAGAIN; /* EAGAIN: a pipe of this program, and empty */
}

/* Copies the file `from` to standard output, in pieces so small that no write can sleep. */
static void show_file(int from)
{
	char block[PIPE_BUF];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, block, sizeof block, at)) > 0) {
		wait_for_fd(STDOUT_FILENO, true);
		if (!write_all(STDOUT_FILENO, block, (size_t)n)) {
			if (errno == EPIPE)
				end_by(SIGPIPE);
			give_up(EX_IOERR, "standard output", strerror(errno));
		}
		at += n;
	}
	if (n < 0)
		give_up(EX_IOERR, "temporary file", strerror(errno));
}

/* ---- jobs ---- */

/* Note with what wait status the command of message `number` ended. */
static void judge(unsigned long number, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (outcome == EX_OK)
		outcome = EXIT_COMMAND_FAILED;
	stop = stop || how.stop_on_failure;
	if (how.quiet || ending)
		return;
	if (WIFEXITED(status))
		complain("message %lu: the command failed: exit status %d", number,
		    WEXITSTATUS(status));
	else
		complain("message %lu: the command failed: killed by signal %d (%s)", number,
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
}

/* keep_order: prints the output of the ended commands, as far as it is their turn. */
static void show_outputs(void)
{
	for (int i = 0; i < how.jobs; i++) {
		struct job *job = &jobs[i];

		if (job->pid || !job->number || job->number != next_shown)
			continue;
		next_shown++; /* before the output: a write may end the program, which calls this function again */
		show_file(job->out);
		close(job->out);
		job->number = 0;
		i = -1; /* the next one may have any place */
	}
}

/* Collects each command that has ended.  Children of another program (a shell, before it became
 * this program) are passed over. */
static void reap(void)
{
	int status;
	pid_t pid;

	child_ended = 0;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < how.jobs; i++)
			if (jobs[i].pid == pid) {
				jobs[i].pid = 0;
				running--;
				judge(jobs[i].number, status);
				if (!how.keep_order)
					jobs[i].number = 0;
			}
	if (how.keep_order)
		show_outputs();
}

static struct job *free_job(void)
{
	for (;;) {
		for (int i = 0; i < how.jobs; i++)
			if (!jobs[i].number)
				return &jobs[i];
		wait_for_command();
	}
}

/* Starts the command; returns 0 or an errno. */
static int spawn(struct job *job, int in)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int error;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	if (how.keep_order)
		posix_spawn_file_actions_adddup2(&files, job->out, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&attributes, &mask_at_start);
	posix_spawnattr_setsigdefault(&attributes, &reset_in_command);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	error = posix_spawnp(&job->pid, how.command[0], &files, &attributes, how.command, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return error;
}

/* Run the command for the message, with `in` as its standard input. */
static void start_command(int in)
{
	struct job *job = free_job();
	int error;

	if (stop)
		return; /* a command has failed while this message was gathered */
	if (how.keep_order)
		job->out = nameless_file();
	while ((error = spawn(job, in)) == EAGAIN && running)
		wait_for_command(); /* the limit of processes is reached: let one end first */
	if (error) {
		job->pid = 0; /* posix_spawn() may have left any value there */
		give_up(error == ENOENT ? EXIT_NOT_FOUND :
		    error == EAGAIN || error == ENOMEM ? EX_OSERR : EXIT_CANNOT_RUN,
		    how.command[0], strerror(error));
	}
	job->number = message.number;
	running++;
}

void commands_start(const struct how *wanted)
{
	how = *wanted;
	how.keep_order = how.keep_order && how.jobs > 1; /* one at a time is in order */
	set_up_signals();
}

int commands_finish(void)
{
	reap();
	while (running)
		wait_for_command();
	return outcome;
}

/* ---- the message ---- */

/* Lets pending signals in, since no call has slept for long. */
static void let_signals_in(void)
{
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof ending_signals / sizeof ending_signals[0]; i++)
		if (sigismember(&pending, ending_signals[i]) == 1 &&
		    sigismember(&mask_asleep, ending_signals[i]) == 0)
			sigsuspend(&mask_asleep);
	obey_signals();
}

void message_open(unsigned long number)
{
	int ends[2];

	let_signals_in();
	message.number = number;
	message.unwanted = false;
	if (pipe(ends) < 0)
		give_up(EX_OSERR, "pipe", strerror(errno));
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFL, O_NONBLOCK); /* this program's end alone: the command's end stays blocking */
	message.read_end = ends[0];
	message.write_end = ends[1];
	if (how.jobs == 1) {
		start_command(ends[0]);
		close(ends[0]); /* else EPIPE would never be reported */
		message.read_end = NO_FD;
	}
}

/* The message fills the pipe: go on in a file. */
static void spool(void)
{
	int file = nameless_file();

	fcntl(message.read_end, F_SETFL, O_NONBLOCK);
	if (!copy_to_file(message.read_end, file))
		give_up(EX_IOERR, "temporary file", strerror(errno));
	close_pipe();
	message.read_end = message.write_end = file;
}

static void gather(const char *data, size_t size)
{
	if (message.read_end != message.write_end) {
		ssize_t n = write(message.write_end, data, size);

		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
		if (size == 0)
			return;
		spool();
	}
	if (!write_all(message.write_end, data, size))
		give_up(EX_IOERR, "temporary file", strerror(errno));
}

void message_feed(const char *data, size_t size)
{
	if (how.jobs > 1) {
		gather(data, size);
	} else if (!message.unwanted && !write_all(message.write_end, data, size)) {
		if (errno != EPIPE)
			give_up(EX_OSERR, "pipe to the command", strerror(errno));
		message.unwanted = true;
	}
}

bool message_close(void)
{
	if (how.jobs == 1) {
		close_pipe();
		commands_finish();
	} else {
		if (message.read_end == message.write_end)
			lseek(message.read_end, 0, SEEK_SET);
		start_command(message.read_end);
		close_pipe();
		reap();
	}
	return !stop;
}
