/* SPDX-License-Identifier: MIT */
/* probe-pty.c - types at a command through a terminal of its own, and reads what it prints. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "probe.h"

static char text[1 << 18];    /* all that the terminal has shown */
static size_t shown, matched; /* its bytes; and up to where "expect" has matched */
static int terminal;
static unsigned short columns; /* 0: the terminal does not know */

/* No echo: "expect" must not match what the test types. */
static void quieten(int slave)
{
	struct termios t;

	if (tcgetattr(slave, &t) != 0)
		fail("cannot set up", "terminal");
	t.c_lflag &= (tcflag_t) ~(ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL);
	t.c_oflag &= (tcflag_t)~ONLCR;
	tcsetattr(slave, TCSANOW, &t);
}

static void set_width(int slave)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};

	if (columns > 0 && ioctl(slave, TIOCSWINSZ, &size) != 0)
		fail("cannot set the width of", "terminal");
}

/* As after a login: a shell's "&" and nohup ignore signals, and the keys would do nothing. */
static void restore_signals_of_terminal(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		signal(signals[i], SIG_DFL);
}

static pid_t start_in_terminal(char **command)
{
	int slave;
	pid_t pid;

	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
		fail("cannot open", "terminal");
	slave = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		fail("cannot open", "terminal");
	quieten(slave);
	set_width(slave);
	pid = fork();
	if (pid != 0) {
		close(slave);
		return pid;
	}
	setsid();
	ioctl(slave, TIOCSCTTY, 0);
	for (int fd = 0; fd < 3; fd++)
		dup2(slave, fd);
	restore_signals_of_terminal();
	become(command);
}

/* Reads what there is; 0 when nothing came for MS milliseconds or at the end. */
static int listen_for(long long ms)
{
	struct pollfd in = {.fd = terminal, .events = POLLIN};
	ssize_t n;

	if (ms < 0 || poll(&in, 1, (int)ms) <= 0 || shown == sizeof text)
		return 0;
	n = read(terminal, text + shown, sizeof text - shown);
	if (n <= 0)
		return 0;
	fwrite(text + shown, 1, (size_t)n, stdout);
	fflush(stdout);
	shown += (size_t)n;
	return 1;
}

static int expect(const char *word)
{
	long long end = now_ms() + PATIENCE_MS / 2;
	char *at;

	while ((at = memmem(text + matched, shown - matched, word, strlen(word))) == NULL)
		if (!listen_for(end - now_ms()))
			return -1;
	matched = (size_t)(at - text) + strlen(word);
	return 0;
}

/* ^C is control-C, ^Z control-Z, and so on. */
static void type(const char *words, int enter)
{
	for (; *words != '\0'; words++) {
		char c = *words;
		if (c == '^' && words[1] >= '@' && words[1] <= '_')
			c = (char)(*++words & 0x1f);
		if (write(terminal, &c, 1) != 1)
			fail("cannot type", words);
	}
	if (enter && write(terminal, "\n", 1) != 1)
		fail("cannot type", "a newline");
}

/* Returns when the terminal's foreground job sleeps in a lock call. */
static int foreground_blocked(void)
{
	long long end = now_ms() + PATIENCE_MS / 2;

	do {
		pid_t job = tcgetpgrp(terminal);
		if (job > 0 && sleeps_in_lock(job))
			return 0;
		pause_ms(1);
	} while (now_ms() < end);
	return -1;
}

/* Types Ctrl-S, and returns when the terminal takes no more output. */
static int stop_output(void)
{
	long long end = now_ms() + PATIENCE_MS / 2;
	struct pollfd out = {.events = POLLOUT};
	int taken = 1;

	type("^S", 0);
	out.fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	while (out.fd >= 0 && (taken = poll(&out, 1, 0)) > 0 && now_ms() < end)
		pause_ms(1);
	close(out.fd);
	return taken == 0 ? 0 : -1;
}

/* Returns when the file NAME exists.  The terminal may be stopped. */
static int until_file(const char *name)
{
	long long end = now_ms() + PATIENCE_MS / 2;

	while (access(name, F_OK) != 0) {
		if (now_ms() >= end)
			return -1;
		pause_ms(1);
	}
	return 0;
}

static int make_file(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* One line of the script: "line TEXT" types TEXT and Enter, "send TEXT" without Enter,
 * "expect TEXT" waits until the terminal shows it, "blocked" until the foreground job waits for a
 * lock; "stop" types Ctrl-S, "pause MS" waits, "make FILE" makes a file, "until FILE" waits for
 * one. */
static int follow(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "line ", 5) == 0)
		type(line + 5, 1);
	else if (strncmp(line, "send ", 5) == 0)
		type(line + 5, 0);
	else if (strncmp(line, "expect ", 7) == 0 && expect(line + 7) != 0) {
		fprintf(stderr, "probe: the terminal did not show '%s'\n", line + 7);
		return -1;
	} else if (strcmp(line, "blocked") == 0 && foreground_blocked() != 0) {
		fprintf(stderr, "probe: what runs in the terminal does not wait for a lock\n");
		return -1;
	} else if (strcmp(line, "stop") == 0 && stop_output() != 0) {
		fprintf(stderr, "probe: Ctrl-S does not stop the terminal\n");
		return -1;
	} else if (strncmp(line, "make ", 5) == 0 && make_file(line + 5) != 0) {
		fprintf(stderr, "probe: cannot make the file '%s'\n", line + 5);
		return -1;
	} else if (strncmp(line, "until ", 6) == 0 && until_file(line + 6) != 0) {
		fprintf(stderr, "probe: there is no file '%s'\n", line + 6);
		return -1;
	} else if (strncmp(line, "pause ", 6) == 0)
		pause_ms(atoi(line + 6));
	return 0;
}

/* pty [-w COLUMNS] COMMAND...: runs COMMAND in a terminal, where the signals of keys and of job
 * control are not ignored; follows the script on standard input, then reads until COMMAND ends. All
 * that the terminal shows goes to standard output; the exit status is COMMAND's, or 99 if an
 * "expect" found nothing or COMMAND did not end. */
int cmd_pty(int argc, char **argv)
{
	static char line[4096];
	long long end;
	int status, ok = 1;
	pid_t pid;

	if (argc > 3 && strcmp(argv[1], "-w") == 0) {
		columns = (unsigned short)atoi(argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc < 2)
		misuse("pty [-w COLUMNS] COMMAND... <SCRIPT");
	pid = start_in_terminal(argv + 1);
	while (ok && fgets(line, sizeof line, stdin) != NULL)
		ok = follow(line) == 0;
	end = now_ms() + PATIENCE_MS / 2;
	while (ok && listen_for(end - now_ms()))
		;
	while (ok && waitpid(pid, &status, WNOHANG) == 0) {
		ok = now_ms() < end;
		pause_ms(1);
	}
	if (!ok) {
		close(terminal);
		kill(pid, SIGKILL);
		return 99;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
