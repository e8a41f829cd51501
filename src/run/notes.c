/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

#include "cli/other_semlock.h"
#include "report/text.h"
#include "run/notes.h"

/* A placeholder's name, too, begins so; and it has semlock's command line. */
static bool is_semlock(const struct process *process)
{
	return strncmp(process->name, "semlock", strlen("semlock")) == 0;
}

/* A server has told the note of what it knows. */
static void read_note(struct owner *owner)
{
	struct process semlock = owner->process;
	struct other_semlock other;

	if (owner->host[0] != '\0' ||
	    (owner->supervisor > 0 && !process_read(owner->supervisor, &semlock)) ||
	    !is_semlock(&semlock))
		return;
	other_semlock_read(semlock.command, semlock.command_length, &other);
	text_note(owner->note, other.note);
}

void notes_read(struct owners *found)
{
	for (size_t i = 0; i < found->count; i++)
		read_note(&found->list[i]);
}
