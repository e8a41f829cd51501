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

/* Has a process in STATE ended, with all its threads?  (kill(2) does not tell: it succeeds for a
 * zombie.) */
bool procfs_ended(char state);

/* Room for a command line; a longer one is cut. */
enum { PROCESS_COMMAND = 2048 };

struct process {
	pid_t pid;
	pid_t parent;
	uid_t user, real_user;      /* effective, real; (uid_t)-1: not known */
	unsigned long long started; /* clock ticks after boot; identifies it, together with PID */
	char name[32];
	char command[PROCESS_COMMAND]; /* its arguments, each ended by a zero */
	size_t command_length;
};

/* Read the contents of the file PATH into TEXT (SIZE bytes, ended by a zero).  Returns their
 * length, or -1 with errno set. */
ssize_t process_file(const char *path, char *text, size_t size);

/* Fill SEEN from /proc/PID/stat.  SEEN->started does not depend on this process's time namespace.
 * Returns false if /proc does not have PID. */
bool process_stat(pid_t pid, struct procfs_stat *seen);

/* Is PID alive?  False if /proc does not have it, or it is a zombie without another thread. */
bool process_lives(pid_t pid);

/* Was PID stopped by a signal (SIGSTOP, Ctrl-Z) when /proc was read?  Also false if /proc cannot
 * tell: it does not show that a control group is frozen, and if it shows another PID namespace, PID
 * means another process there. */
bool process_stopped(pid_t pid);

/* Is PID stopped by a signal or by a debugger, so that it does not answer?  False if /proc does not
 * have it. */
bool process_stopped_or_traced(pid_t pid);

/* Fill PROCESS from /proc/PID.  A process without arguments gets its name as its command.  Returns
 * false if /proc does not have PID; then only PROCESS->pid is set. */
bool process_read(pid_t pid, struct process *process);

/* What was found in the directory of a process's descriptors in /proc. */
enum fds_shown {
	FDS_SOME,
	FDS_NONE,
	FDS_REFUSED /* EACCES, EPERM */
};

/* Return the thread whose directory in /proc shows PID's descriptors.  SHOWN: what was found in
 * PID's own directory.  If PID's first thread has ended before the others, PID's own directory
 * shows no descriptors to root, and refuses the process's user; the directory of every other thread
 * shows them.  Then returns one of those threads; otherwise PID. */
pid_t process_thread_with_files(pid_t pid, enum fds_shown shown);

/* Call SEE with the PID of each child of PID's first thread, until SEE returns false.  If the
 * kernel does not list children, or PID has too many, call SEE with the PID of every process: so
 * SEE must check the parent. */
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
 * not: PID 5 in /proc is then another process than PID 5 of kill(2). */
bool process_numbers_ours(void);

/* Does process PID descend from ANCESTOR, through a child of ANCESTOR that started at SINCE (ticks
 * after boot) or later?  False for EXCEPT (0: none) and the descendants of EXCEPT. */
bool process_descends(pid_t pid, pid_t ancestor, unsigned long long since, pid_t except);

/* Call SEE with each PID in /proc, until SEE returns false. */
void process_each(bool (*see)(pid_t pid, void *context), void *context);

/* The next process in PROC, /proc opened by opendir(3); 0: no more. */
pid_t process_next(DIR *proc);

/* Convert STARTED, clock ticks after boot, into nanoseconds after 1970, exact to a tick (10 ms). */
int64_t process_start(unsigned long long started);

/* Is NAME, a program without its directory, a shell that takes -c? */
bool process_is_shell(const char *name);

/* Write PROCESS's command line, for people, into TEXT (SIZE bytes): the program without its
 * directory, and the arguments, at most COLUMNS characters.  In "sh -c STRING", STRING is quoted;
 * if COLUMNS is small, only STRING is shown. */
void process_command(const struct process *process, char *text, size_t size, size_t columns);

/* Put the working directory of process PID into TEXT.  Returns false if it is unknown. */
bool process_directory(pid_t pid, char *text, size_t size);

/* Open a pidfd of process PID: it becomes readable when the process has ended, and is closed at
 * exec.  Returns -1 with errno set: ESRCH, no such process; ENOSYS, a kernel without pidfds. */
int pidfd_of(pid_t pid);

/* Send the signal SIGNO to the process of the pidfd FD.  Returns 0, or -1 with errno set. */
int pidfd_send(int fd, int signo);

/* Send SIGNO with VALUE, like sigqueue(3): VALUE tells the receiver what the signal means. */
int pidfd_queue(int fd, int signo, int value);

/* waitid(2) for WHICH children, repeated while a signal interrupts it.  If a sandbox refuses
 * waitid(2), use waitpid(2), which lacks WNOWAIT: then the child is reaped.  INFO->si_pid is 0 if
 * no child has changed its state.  Returns 0, or -1 with errno set. */
int process_wait(idtype_t which, pid_t child, siginfo_t *info, int options);

/* Is our child CHILD alive?  Asks waitid(2) instead of /proc, which may not be mounted, or show
 * another PID namespace. */
bool process_child_lives(pid_t child);

/* Send SIGNO to our child CHILD, through PIDFD.  If PIDFD is -1, use kill(2), but only while CHILD
 * is alive: after that, another process could have its PID. */
void process_child_signal(pid_t child, int pidfd, int signo);

#endif
