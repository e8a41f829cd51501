/* SPDX-License-Identifier: MIT */
/* sys/process.h - a process, as /proc shows it to any user. */
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

/* Parse TEXT of /proc/PID/stat into SEEN.  Returns false if it is invalid.  The program's name may
 * contain anything, even ") R 1 ". */
bool procfs_stat(const char *text, struct procfs_stat *seen);

/* Has a process in STATE ended, with all its threads?  (kill(2) succeeds for a zombie.) */
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

/* Fill SEEN from /proc/PID/stat; the start does not depend on the time namespace.  Returns false if
 * /proc does not have PID. */
bool process_stat(pid_t pid, struct procfs_stat *seen);

/* Is PID alive?  False if /proc does not have it, or it is a zombie without another thread. */
bool process_lives(pid_t pid);

/* Is PID stopped by a signal (SIGSTOP, Ctrl-Z), or was it a moment ago?  False if /proc does not
 * say: it shows neither a frozen control group nor a process of another PID namespace. */
bool process_stopped(pid_t pid);

/* Is PID stopped by a signal or by a debugger, so that it does not answer?  False if /proc does not
 * have it. */
bool process_stopped_or_traced(pid_t pid);

/* Fill PROCESS from /proc/PID.  A process without arguments gets its name as its command.  Returns
 * false if /proc does not have PID; then only PROCESS->pid is set. */
bool process_read(pid_t pid, struct process *process);

/* What the directory of a process's descriptors in /proc showed. */
enum fds_shown {
	FDS_SOME,
	FDS_NONE,
	FDS_REFUSED /* EACCES, EPERM */
};

/* Which thread's directory in /proc shows PID's descriptors, after PID's own directory has SHOWN
 * this?  If the first thread has ended before the others, PID's own directory shows no descriptors
 * to root, and refuses the user whose process it is; that of each other thread shows them.  Returns
 * one of these threads; otherwise PID. */
pid_t process_thread_with_files(pid_t pid, enum fds_shown shown);

/* Call SEE with the pid of each child that PID's first thread has, until SEE returns false; where
 * the kernel does not list children, or they are too many, with the pid of each process. */
void process_children(pid_t pid, bool (*see)(pid_t pid, void *context), void *context);

/* PID's youngest child that has not ended, or 0. */
pid_t process_youngest_child(pid_t pid);

/* Is process PID in a PID namespace below that of /proc, where processes have other numbers?  Also
 * false if the kernel does not say, before Linux 4.1. */
bool process_is_below(pid_t pid);

/* Is this process in the machine's first PID namespace, from which all processes are seen?  False
 * if /proc does not say. */
bool process_sees_all(void);

/* Does /proc show this process's PID namespace?  After unshare -p -f without --mount-proc it does
 * not: its PID 5 is not kill(2)'s. */
bool process_numbers_ours(void);

/* Does process PID descend from ANCESTOR, through a child that started at SINCE (ticks after boot)
 * or later, without being EXCEPT (0: none) or descending from it? */
bool process_descends(pid_t pid, pid_t ancestor, unsigned long long since, pid_t except);

/* Call SEE with each PID, until it returns false. */
void process_each(bool (*see)(pid_t pid, void *context), void *context);

/* The next process in PROC, /proc opened by opendir(3); 0: no more. */
pid_t process_next(DIR *proc);

/* STARTED, clock ticks after boot, in nanoseconds after 1970, exact to a tick (10 ms). */
int64_t process_start(unsigned long long started);

/* Is NAME, a program without its directory, a shell that takes -c? */
bool process_is_shell(const char *name);

/* PROCESS's command line for people: the program without its directory, and the arguments, at most
 * COLUMNS characters.  The string of "sh -c STRING" is quoted; where there is little room, the
 * shell is left out. */
void process_command(const struct process *process, char *text, size_t size, size_t columns);

/* Put the working directory of process PID into TEXT.  Returns false if it is unknown. */
bool process_directory(pid_t pid, char *text, size_t size);

/* A descriptor of process PID that becomes readable when it has ended; closed at exec.  Returns -1
 * with errno set: ESRCH, no such process; ENOSYS, a kernel without pidfds. */
int pidfd_of(pid_t pid);

/* Send the signal SIGNO to the process of FD.  Returns 0, or -1 with errno set. */
int pidfd_send(int fd, int signo);

/* The same with VALUE, like sigqueue(3): it tells the receiver what the signal means. */
int pidfd_queue(int fd, int signo, int value);

/* waitid(2) for WHICH children, repeated while a signal interrupts it.  If a sandbox refuses the
 * call, waitpid(2) is used, which has no WNOWAIT: the child is reaped, and INFO->si_pid is 0 if
 * there was none.  Returns 0, or -1 with errno set. */
int process_wait(idtype_t which, pid_t child, siginfo_t *info, int options);

/* Is our child CHILD alive?  Does not read /proc, which may be missing, or of another PID
 * namespace. */
bool process_child_lives(pid_t child);

/* Signal our child CHILD, through PIDFD unless that is -1: the PID could be another process's by
 * now. */
void process_child_signal(pid_t child, int pidfd, int signo);

#endif
