/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

#include "cli/other_semlock.h"
#include "report/text.h"
#include "run/notes.h"

/* Does PROCESS have the command line of a semlock?  A placeholder has, too, and its name begins
 * with semlock's. */
static bool has_semlocks_words(const struct process *process)
{
	return strncmp(process->name, SEMLOCK_NAME, strlen(SEMLOCK_NAME)) == 0;
}

/* Fill in OWNER's note.  For a lock on a server (HOST is set), the note comes from the server. */
static void read_note(struct owner *owner)
{
	struct process semlock = owner->process;
	struct other_semlock other;

	if (owner->host[0] != '\0' ||
	    (owner->supervisor > 0 && !process_read(owner->supervisor, &semlock)) ||
	    !has_semlocks_words(&semlock))
		return;
	other_semlock_read(semlock.command, semlock.command_length, &other);
	text_note(owner->note, other.note);
}

void notes_read(struct owners *found)
{
	for (size_t i = 0; i < found->count; i++)
		read_note(&found->list[i]);
}
