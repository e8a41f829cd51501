/* SPDX-License-Identifier: MIT */
/* probe.h - what the parts of the tests' C helper share.
 *
 * Each sub-command is one function of the shape of main(): ARGV[0] is the name
 * of the sub-command, the result is the exit status.  None returns on misuse. */
#ifndef SEMLOCK_PROBE_H
#define SEMLOCK_PROBE_H

#include <signal.h>
#include <sys/types.h>

/* How long, in milliseconds, the probe waits for an event: longer than a busy machine ever needs,
 * so that no test fails for lack of speed. */
enum { PATIENCE_MS = 60000 };

/* probe.c */
void fail(const char *what, const char *name) __attribute__((noreturn)); /* "what: name: errno" */
void misuse(const char *how) __attribute__((noreturn)); /* prints the usage; exits with 64 */
long number(const char *text);                          /* a decimal number, else misuse() */
int signal_number(const char *name);                    /* "TERM" -> SIGTERM, else misuse() */
const char *signal_name(int number);                    /* SIGTERM -> "TERM", "?" when unknown */
long long now_ms(void);                                 /* the monotonic clock, in milliseconds */
void pause_ms(long ms); /* sleeps MS milliseconds, also when signals interrupt it */
void become(char **argv) __attribute__((noreturn)); /* exec, or 127 with a message */

int sleeps_in_lock(pid_t pid); /* probe-look.c: is a thread of PID in a blocking lock call now? */

int cmd_hold(int argc, char **argv);
int cmd_hold_in_thread(int argc, char **argv);
int cmd_closefrom_then_hold(int argc, char **argv);
int cmd_leave_behind(int argc, char **argv);
int cmd_fds(int argc, char **argv);

int cmd_fcntl_hold(int argc, char **argv);
int cmd_tickets(int argc, char **argv);
int cmd_flip(int argc, char **argv);

/* Opens the FIFO NAME for reading and writing; writes "ready PID" to it. */
int open_fifo(const char *name);
void say_ready(int up);
int cmd_free(int argc, char **argv);
int cmd_until_free(int argc, char **argv);

int cmd_with_mask(int argc, char **argv);
int cmd_with_ignored(int argc, char **argv);
int cmd_with_default(int argc, char **argv);
int cmd_with_closed(int argc, char **argv);
int cmd_rlimit_nofile(int argc, char **argv);

int cmd_blocked(int argc, char **argv);
int cmd_state(int argc, char **argv);
int cmd_gone(int argc, char **argv);
int cmd_line(int argc, char **argv);

int cmd_room(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_watchdog(int argc, char **argv);

int cmd_signals(int argc, char **argv);
int cmd_inside(int argc, char **argv);
int cmd_verdict(int argc, char **argv);
int cmd_storm(int argc, char **argv);
int cmd_json(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_pty(int argc, char **argv);
int cmd_timer(int argc, char **argv);
int cmd_pauses(int argc, char **argv);
int cmd_slowness(int argc, char **argv);
int cmd_nothing(int argc, char **argv);
int cmd_socket(int argc, char **argv);

#endif
