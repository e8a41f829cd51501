/* SPDX-License-Identifier: MIT */
/* sys/ancestors.h - this process's ancestors, by name.
 *
 * A process can give itself any name.  That is no danger here: semlock reads only the names of its
 * ancestors, and each of these had control over how this process was started anyway. */
#ifndef SEMLOCK_SYS_ANCESTORS_H
#define SEMLOCK_SYS_ANCESTORS_H

#include <stddef.h>
#include <sys/types.h>

/* Find the nearest ancestor called NAME.  NAME may be the kernel's name of the process (comm), or
 * the last part of its program's path, or of the script or Python module that its interpreter runs.
 * If that ancestor is a subshell, the shell that forked it is returned instead, because a subshell
 * ends before its script does.  Returns the PID; 0 if no ancestor has that name, or if /proc does
 * not show this PID namespace. */
pid_t ancestor_named(const char *name);

/* Write this process's ancestors into TEXT, the nearest first: "4242 sh, 4200 node (codex)".  The
 * text is safe to print on a terminal.  If there is not enough room for all, it ends in ", ...".
 * If none can be seen, it is "none that can be seen". */
void ancestors_text(char *text, size_t size);

#endif
