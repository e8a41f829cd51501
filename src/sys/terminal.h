/* SPDX-License-Identifier: MIT */
/* sys/terminal.h - the controlling terminal: writes that do not block, its width, and its
 * foreground process group. */
#ifndef SEMLOCK_SYS_TERMINAL_H
#define SEMLOCK_SYS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Open the controlling terminal for terminal_put(); may be called in a signal handler.  Returns a
 * descriptor that closes at exec, or -1. */
int terminal_open(void);

/* Write LENGTH bytes of TEXT to TERMINAL, from terminal_open(); may be called in a signal handler.
 * If the terminal is stopped (Ctrl-S) or full, waits at most 20 ms.  Returns the number of bytes
 * that the terminal took. */
size_t terminal_put(int terminal, const char *text, size_t length);

/* Does FD's file take bytes within 20 ms?  False for a stopped terminal or a full pipe. */
bool terminal_takes_bytes(int fd);

/* The columns of FD's terminal; 0 if FD is no terminal, or the width is unknown. */
size_t terminal_columns(int fd);

/* Is process group GROUP in the foreground of the controlling terminal? */
bool terminal_shows_group(pid_t group);

/* If process group FROM is in the foreground of the controlling terminal, put TO there.  The caller
 * must have SIGTTOU blocked.  Returns whether it was done. */
bool terminal_pass(pid_t from, pid_t to);

#endif
