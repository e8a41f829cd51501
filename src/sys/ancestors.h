/* SPDX-License-Identifier: MIT */
/* sys/ancestors.h - this process's ancestors, by name.
 *
 * A process chooses its own name.  That is no danger here: only ancestors are looked at, and each
 * of them decided anyway how this process was started. */
#ifndef SEMLOCK_SYS_ANCESTORS_H
#define SEMLOCK_SYS_ANCESTORS_H

#include <stddef.h>
#include <sys/types.h>

/* The nearest ancestor called NAME.  That is the kernel's name of the process (comm), or the last
 * part of its program's path, or of the script or Python module that its interpreter runs.  A
 * subshell ends before its script does: of a shell and its copies, the shell counts.  Returns its
 * PID, or 0: none has that name, or /proc does not show this PID namespace. */
pid_t ancestor_named(const char *name);

/* Write all ancestors into TEXT, the nearest first, as far as they fit: "4242 sh, 4200 node
 * (codex)".  It is safe for a terminal; "none that can be seen" if there is none. */
void ancestors_text(char *text, size_t size);

#endif
