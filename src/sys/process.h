/* sys/process.h - a process, as /proc shows it to everybody. */
#ifndef SEMLOCK_SYS_PROCESS_H
#define SEMLOCK_SYS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Room for a command line; a longer one is cut. */
enum { PROCESS_COMMAND = 2048 };

struct process {
	pid_t pid;
	pid_t parent;
	uid_t user, real_user;         /* effective, real; (uid_t)-1: not known */
	unsigned long long started;    /* clock ticks after boot: with the pid, its identity */
	char name[32];
	char command[PROCESS_COMMAND]; /* its arguments, each ended by a zero */
	size_t command_length;
};

/* Read the contents of the file PATH into TEXT (SIZE bytes, ended by a zero).  Returns their
 * length, or -1 with errno set. */
ssize_t process_file(const char *path, char *text, size_t size);

/* Its parent, name and start.  Returns false when there is no such process. */
bool process_stat(pid_t pid, struct procfs_stat *stat);

/* Is there such a process, and has it not ended? */
bool process_lives(pid_t pid);

/* All of it.  A process without arguments has its name for a command. */
bool process_read(pid_t pid, struct process *process);

/* PID's youngest child, or 0. */
pid_t process_youngest_child(pid_t pid);

/* Does /proc tell of processes by the numbers that we know them by?  Not where it was mounted in
 * another PID namespace, as after unshare -p -f alone: there 5 is somebody else. */
bool process_numbers_ours(void);

/* Is ELDER a parent, or a parent's parent and so on, of the process PID?  A process is not
 * its own. */
bool process_descends(pid_t pid, pid_t elder);

/* Call SEE with each process's pid, until it returns false. */
void process_each(bool (*see)(pid_t pid, void *context), void *context);

/* When PROCESS was started: nanoseconds after 1970, good to a clock tick (10 ms). */
int64_t process_start(unsigned long long started);

/* Its command line for people: the program without its directory, and the arguments, with a
 * blank between two, at most COLUMNS characters. */
void process_command(const struct process *process, char *text, size_t size, size_t columns);

#endif
