/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

enum {
	FLOCK = 1,
	OFD = 2,
	POSIX = 4,
	EXCL = 8,
	LINK = 16,
	MKDIR = 32,
	SYMLINK = 64,
	RENAME = 128,
	KERNEL = FLOCK | OFD | POSIX,
	ALL = 255,
	MAY_FAIL = 256, /* busy: at the time limit, or at once */
	PEER = 512,     /* not semlock; its exit status may be any */
	IMMORTAL = 1024 /* not to be killed: its lock is never taken over */
};

/* In the command, a blank parts words, and a ~ stands for a blank; @s is semlock, @m the
 * method, @t this program, @n the contender's number. */
struct form {
	const char *name;
	int flags;
	const char *command;
};

static const struct form forms[] = {
    {"command", FLOCK | OFD | EXCL | LINK | MKDIR | SYMLINK | RENAME,
	"@s -m @m lock @t inside @n x"},
    {"command", POSIX, "@s -m @m lock @t inside @n x"},
    {"shell", FLOCK | OFD, "@s -m @m lock -c exec~\"$TORTURE\"~inside~@n~x"},
    {"become", KERNEL, "@s -m @m -F lock @t inside @n x"},
    {"close", FLOCK | OFD, "@s -m @m -o lock @t inside @n x"},
    {"fd", FLOCK | OFD, "@t fd @n x @s -m @m 20"},
    {"number", FLOCK | OFD, "@t open @s -m @m --fd 20 @t inside @n x"},
    {"deadline", MAY_FAIL | (ALL & ~POSIX), "@s -m @m -w .01 lock @t inside @n x"},
    {"deadline", MAY_FAIL | POSIX, "@s -m @m -w .01 lock @t inside @n x"},
    {"try", MAY_FAIL | (ALL & ~POSIX), "@s -m @m -n lock @t inside @n x"},
    {"replace", ALL & ~POSIX, "@s -m @m --replace --kill-after .05 lock @t inside @n x"},
    {"replace", POSIX, "@s -m @m --replace --kill-after .05 lock @t inside @n xt"},
    {"supersede", MAY_FAIL | ALL, "@s -m @m --supersede lock @t inside @n x"},
    {"shared", FLOCK | OFD, "@s -m @m -s lock @t inside @n s"},
    {"shared", POSIX, "@s -m @m -s lock @t inside @n s"},
    {"slots", FLOCK | OFD, "@s -m @m -j 3 lock @t inside @n j"},
    {"slots", POSIX, "@s -m @m -j 3 lock @t inside @n j"},
    {"rm", FLOCK | OFD, "@s -m @m --rm lock @t inside @n x"},
    {"rm", POSIX, "@s -m @m --rm lock @t inside @n x"},
    {"delete", FLOCK | OFD, "@s -m @m lock @t inside @n d"},
    {"delete", POSIX, "@s -m @m -F lock @t inside @n d"},
    {"peer", PEER | FLOCK, "flock lock @t inside @n x"},
    {"peer", PEER | FLOCK, "flock -s lock @t inside @n s"},
    {"peer", PEER | POSIX | OFD, "lckdo -w -e lock @t inside @n x"},
    {"dotlockfile", PEER | IMMORTAL | LINK,
	"sh -c until~dotlockfile~-l~-r~0~lock;do~sleep~.002;done;"
	"\"$TORTURE\"~inside~@n~x;dotlockfile~-u~lock"},
    {"peer", PEER | IMMORTAL | LINK,
	"sh -c until~lockfile~-r~0~lock~2>/dev/null;do~sleep~.002;"
	"done;\"$TORTURE\"~inside~@n~x;rm~-f~lock"},
    {"peer", PEER | EXCL, "@t hand excl @n"},
    {"peer", PEER | IMMORTAL | MKDIR, "@t hand mkdir @n"},
    {"peer", PEER | SYMLINK, "@t hand symlink @n"},
    {"peer", PEER | IMMORTAL | RENAME, "@t hand rename @n"},
    {"breaker", PEER | IMMORTAL | EXCL | LINK, "@t hand break-excl @n"},
    {"breaker", PEER | IMMORTAL | MKDIR, "@t hand break-mkdir @n"},
    {"breaker", PEER | IMMORTAL | SYMLINK, "@t hand break-symlink @n"},
};

static const struct {
	const char *name;
	int flag;
} methods[] = {
    {"flock", FLOCK},
    {"ofd", OFD},
    {"posix", POSIX},
    {"excl", EXCL},
    {"link", LINK},
    {"mkdir", MKDIR},
    {"symlink", SYMLINK},
    {"rename", RENAME},
};

static const struct form *chosen[sizeof forms / sizeof *forms];
static unsigned nchosen;

static int flag_of(const char *method)
{
	for (unsigned i = 0; i < sizeof methods / sizeof *methods; i++)
		if (strcmp(methods[i].name, method) == 0)
			return methods[i].flag;
	return 0;
}

/* True if NAME is one of the words of LIST, which commas separate. */
static bool among(const char *name, const char *list)
{
	size_t length = strlen(name);

	while (list != NULL) {
		if (strncmp(list, name, length) == 0 &&
		    (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		list = list == NULL ? NULL : list + 1;
	}
	return false;
}

int forms_choose(const char *method, const char *wanted)
{
	nchosen = 0;
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
		if ((forms[i].flags & flag_of(method)) != 0 &&
		    (wanted != NULL ? among(forms[i].name, wanted) : (forms[i].flags & PEER) == 0))
			chosen[nchosen++] = &forms[i];
	return (int)nchosen;
}

const struct form *form_pick(int slot)
{
	const struct form *form = chosen[pick(nchosen)];

	while (slot == 0 && (form->flags & PEER) != 0)
		form = chosen[pick(nchosen)];
	return form;
}

const char *form_name(const struct form *form)
{
	return form->name;
}

bool form_may_be_killed(const struct form *form)
{
	return (form->flags & IMMORTAL) == 0;
}

bool forms_break(void)
{
	for (unsigned i = 0; i < nchosen; i++)
		if (strcmp(chosen[i]->name, "breaker") == 0)
			return true;
	return false;
}

bool form_replaces(const struct form *form)
{
	return strcmp(form->name, "replace") == 0;
}

/* 65: the descriptor form was given a file that has been deleted in the meantime.
 * 77: the holder belongs to another user. */
bool form_expects(const struct form *form, int status, bool other)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	return (form->flags & PEER) != 0 || code == 0 || code == 128 + SIGKILL ||
	       code == 128 + SIGTERM || (code == 1 && (form->flags & MAY_FAIL) != 0) ||
	       (code == 77 && form_replaces(form) && other) ||
	       (code == 65 && (strcmp(form->name, "fd") == 0 || strcmp(form->name, "number") == 0));
}

static char *copy_of(const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		fatal("out of memory");
	return copy;
}

static char *expanded(const char *word, const char *number)
{
	char *copy = copy_of(word), *at;

	for (at = copy; *at != '\0'; at++) {
		if (*at == '~')
			*at = ' ';
		if (at[0] == '@' && at[1] == 'n') {
			at[0] = number[0];
			at[1] = number[1] == '\0' ? ' ' : number[1];
		}
	}
	return copy;
}

void form_exec(const struct form *form, const char *method, const char *semlock, int slot)
{
	char *argv[32], *text = copy_of(form->command), number[16];
	int argc = 0;

	snprintf(number, sizeof number, "%d", slot);
	for (char *word = strtok(text, " "); word != NULL && argc < 31; word = strtok(NULL, " ")) {
		if (strcmp(word, "@s") == 0)
			argv[argc++] = copy_of(semlock);
		else if (strcmp(word, "@m") == 0)
			argv[argc++] = copy_of(method);
		else if (strcmp(word, "@t") == 0)
			argv[argc++] = copy_of(self);
		else if (strcmp(word, "@n") == 0)
			argv[argc++] = number;
		else
			argv[argc++] = expanded(word, number);
	}
	argv[argc] = NULL;
	setenv("TORTURE", self, 1);
	execvp(argv[0], argv);
	_exit(2);
}

/* ---- helpers of the forms ---- */

static int open_lock(void)
{
	int fd = open("lock", O_RDWR | O_CREAT, 0666);

	if (fd < 0 || dup2(fd, 20) < 0)
		fatal("lock");
	close(fd);
	return 20;
}

int open_and_exec(char **argv)
{
	open_lock();
	execvp(argv[0], argv);
	return 2;
}

/* As in a shell: semlock locks a descriptor of this process and ends, and this process holds the
 * lock. */
int lock_by_descriptor(int slot, const char *mode, char **argv)
{
	int fd = open_lock(), status;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(2);
	}
	atomic_store(&board->semlock[slot], (int)pid);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fatal("waitpid");
	atomic_store(&board->semlock[slot], 0);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	if (WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	status = go_inside(slot, mode);
	close(fd);
	return status;
}

/* The file has its content before its name: the owner of an empty file would be unknown after a
 * kill. */
static bool make_file(const char *text)
{
	int fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
	char path[40];
	bool made;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fatal("lock");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	made = linkat(AT_FDCWD, path, AT_FDCWD, "lock", AT_SYMLINK_FOLLOW) == 0;
	close(fd);
	return made;
}

static bool make_directory(const char *text)
{
	int fd;

	if (mkdir("lock", 0755) != 0)
		return false;
	fd = open("lock/pid", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fatal("lock/pid");
	close(fd);
	return true;
}

static void remove_directory(void)
{
	char aside[32], record[40];

	snprintf(aside, sizeof aside, "lock.%ld", (long)getpid());
	snprintf(record, sizeof record, "%s/pid", aside);
	if (rename("lock", aside) == 0) {
		unlink(record);
		rmdir(aside);
	}
}

/* The process that the lock names; 0: none. */
static long process_named(const char *how)
{
	char text[64] = "";
	bool is_link = strcmp(how, "break-symlink") == 0;
	int fd = is_link ? -1
	                 : open(strcmp(how, "break-mkdir") == 0 ? "lock/pid" : "lock",
			       O_RDONLY | O_CLOEXEC);

	if (is_link)
		return readlink("lock", text, sizeof text - 1) < 0 ? 0 : atol(text);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atol(text);
}

/* As PID files are broken: no process has its number, and it is there still. */
static void break_dead(const char *how)
{
	long pid = strncmp(how, "break-", 6) == 0 ? process_named(how) : 0;

	if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH || process_named(how) != pid)
		return;
	atomic_fetch_add(&board->broken, 1);
	note('B', (pid_t)pid, 0);
	if (strcmp(how, "break-mkdir") == 0)
		remove_directory();
	else
		unlink("lock");
}

static bool take_by_hand(const char *how)
{
	char text[24];

	snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (strcmp(how, "mkdir") == 0)
		return mkdir("lock", 0700) == 0;
	if (strcmp(how, "break-mkdir") == 0)
		return make_directory(text);
	if (strcmp(how, "rename") == 0)
		return rename("lock", "lock.held") == 0;
	if (strcmp(how, "symlink") == 0 || strcmp(how, "break-symlink") == 0) {
		text[strlen(text) - 1] = '\0';
		return symlink(text, "lock") == 0;
	}
	return make_file(text);
}

int by_hand(const char *how, int slot)
{
	int status;

	while (!take_by_hand(how)) {
		break_dead(how);
		pause_us(500);
	}
	status = go_inside(slot, "x");
	if (strcmp(how, "break-mkdir") == 0)
		remove_directory();
	else if (strcmp(how, "mkdir") == 0)
		rmdir("lock");
	else if (strcmp(how, "rename") == 0)
		rename("lock.held", "lock");
	else
		unlink("lock");
	return status;
}
