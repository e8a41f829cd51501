/* SPDX-License-Identifier: MIT */
/* sys/process.h - a process, as /proc shows it to every user. */
#ifndef SEMLOCK_SYS_PROCESS_H
#define SEMLOCK_SYS_PROCESS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>

struct procfs_stat {
	char name[32]; /* of the program, cut by the kernel after 15 bytes */
	char state;    /* see procfs_ended() */
	pid_t parent;
	unsigned long long started; /* clock ticks after boot */
};

/* /proc/PID/stat.  The program's name may hold anything, ") R 1 " included. */
bool procfs_stat(const char *text, struct procfs_stat *stat);

/* Is STATE that of a process that has ended, with all its threads?  kill(2) succeeds for a zombie,
 * too. */
bool procfs_ended(char state);

/* Room for a command line; a longer one is cut. */
enum { PROCESS_COMMAND = 2048 };

struct process {
	pid_t pid;
	pid_t parent;
	uid_t user, real_user;      /* effective, real; (uid_t)-1: not known */
	unsigned long long started; /* clock ticks after boot: with the pid, its identity */
	char name[32];
	char command[PROCESS_COMMAND]; /* its arguments, each ended by a zero */
	size_t command_length;
};

/* Read the contents of the file PATH into TEXT (SIZE bytes, ended by a zero).  Returns their
 * length, or -1 with errno set. */
ssize_t process_file(const char *path, char *text, size_t size);

/* The same, of the running PID.  Returns false when there is no such process. */
bool process_stat(pid_t pid, struct procfs_stat *stat);

bool process_lives(pid_t pid);

/* Read all of it.  A process without arguments gets its name as its command. */
bool process_read(pid_t pid, struct process *process);

/* Call SEE with the pid of each child that PID's first thread has, until it returns false; where
 * the kernel does not list children, with that of each process. */
void process_children(pid_t pid, bool (*see)(pid_t pid, void *context), void *context);

/* PID's youngest child that has not ended, or 0. */
pid_t process_youngest_child(pid_t pid);

/* Is process PID in a PID namespace below that of /proc, where its own words for processes are
 * other numbers?  False also where the kernel does not tell, before Linux 4.1. */
bool process_is_below(pid_t pid);

/* Is /proc that of this process's PID namespace?  After unshare -p -f without --mount-proc it is
 * not: its PID 5 is another process than kill(2)'s. */
bool process_numbers_ours(void);

/* Does the process PID descend from ANCESTOR, by a child of it that started at SINCE (ticks after
 * boot) or later, and neither is nor descends from EXCEPT (0: none)? */
bool process_descends(pid_t pid, pid_t ancestor, unsigned long long since, pid_t except);

/* Call SEE with each PID, until it returns false. */
void process_each(bool (*see)(pid_t pid, void *context), void *context);

/* The next process of PROC, which is /proc, opened by opendir(3); 0: none is left. */
pid_t process_next(DIR *proc);

/* STARTED, clock ticks after boot, in nanoseconds after 1970, exact to a tick (10 ms). */
int64_t process_start(unsigned long long started);

/* PROCESS's command line for people: the program without its directory and the arguments, at most
 * COLUMNS characters. */
void process_command(const struct process *process, char *text, size_t size, size_t columns);

/* Put the working directory of process PID into TEXT.  Returns false if that is not told. */
bool process_directory(pid_t pid, char *text, size_t size);

/* A descriptor of the process PID, readable once that has ended; closed at exec.  Returns -1 with
 * errno set: ESRCH, no such process; ENOSYS, no pidfds in this kernel. */
int pidfd_of(pid_t pid);

/* Send the signal SIGNO to the process of FD.  Returns 0, or -1 with errno set. */
int pidfd_send(int fd, int signo);

/* The same with VALUE, as sigqueue(3): how a process tells what its signal means. */
int pidfd_queue(int fd, int signo, int value);

/* waitid(2) of WHICH children, made again while a signal interrupts it.  A sandbox may refuse the
 * call: then waitpid(2) is asked, which has no WNOWAIT: the child has been waited for, and
 * INFO->si_pid is 0 if there was none.  Returns 0, or -1 with errno set. */
int process_wait(idtype_t which, pid_t child, siginfo_t *info, int options);

/* Does our child CHILD live?  Not asked of /proc, which may be missing, or show another PID
 * namespace. */
bool process_child_lives(pid_t child);

/* Signal our child CHILD, by PIDFD unless that is -1: the PID could be another process's by now. */
void process_child_signal(pid_t child, int pidfd, int signo);

#endif
