/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/text.h"
#include "sys/ancestors.h"
#include "sys/process.h"

/* An ancestor, with the names that it goes by. */
struct ancestor {
	struct process process;
	char program[NAME_MAX + 1]; /* the last part of its program's path; "": may not be read */
	char script[NAME_MAX + 1];  /* that of the script that it interprets; "": none */
	bool is_shell;
};

/* Copy the last part of PATH, LENGTH bytes, into NAME. */
static void copy_last_part(char name[NAME_MAX + 1], const char *path, size_t length)
{
	const char *slash = memrchr(path, '/', length);
	const char *part = slash == NULL ? path : slash + 1;

	snprintf(name, NAME_MAX + 1, "%.*s", (int)(length - (size_t)(part - path)), part);
}

/* Set ANCESTOR's program.  If its file was replaced while it runs, by an update, say, the link
 * /proc/PID/exe leads to "/usr/bin/agent (deleted)": cut that mark off. */
static void read_program(struct ancestor *ancestor)
{
	static const char mark[] = " (deleted)";
	const size_t marked = sizeof mark - 1;
	char link[40], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/%ld/exe", (long)ancestor->process.pid);
	length = readlink(link, path, sizeof path);
	if (length > (ssize_t)marked && memcmp(path + length - marked, mark, marked) == 0)
		length -= (ssize_t)marked;
	copy_last_part(ancestor->program, path, length > 0 ? (size_t)length : 0);
}

enum interpreter { NO_INTERPRETER, SHELL, OTHER_INTERPRETER };

/* Which kind of interpreter is PROGRAM?  It may end in a version ("python3.11"), or be a login
 * shell ("-bash"). */
static enum interpreter interpreter_called(const char *program)
{
	static const char others[][sizeof "nodejs"] = {"bun", "deno", "java", "lua", "node",
	    "nodejs", "perl", "php", "pypy", "python", "ruby", "tclsh"};
	char name[NAME_MAX + 1];
	size_t length;

	snprintf(name, sizeof name, "%s", program + (*program == '-'));
	for (length = strlen(name); length > 0 && strchr("0123456789.-", name[length - 1]) != NULL;)
		name[--length] = '\0';
	if (process_is_shell(name))
		return SHELL;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(name, others[i]) == 0)
			return OTHER_INTERPRETER;
	return NO_INTERPRETER;
}

/* What follows an option of an interpreter. */
enum follows { FOLLOWS_SCRIPT, FOLLOWS_VALUE, FOLLOWS_CODE };

/* What follows WORD, an option, in "sh -ec CODE", "bash -eo pipefail SCRIPT", "python3 -u SCRIPT",
 * "perl -ne CODE". */
static enum follows what_follows(const char *word, bool is_shell)
{
	const char last = word[strlen(word) - 1];

	if (word[1] == '-')
		return strcmp(word, "--eval") == 0 || strcmp(word, "--print") == 0 ? FOLLOWS_CODE
		                                                                   : FOLLOWS_SCRIPT;
	if (is_shell && strchr(word, 'c') != NULL)
		return FOLLOWS_CODE;
	if (is_shell)
		return last == 'o' || last == 'O' ? FOLLOWS_VALUE : FOLLOWS_SCRIPT;
	return last == 'c' || last == 'e' || last == 'p' ? FOLLOWS_CODE : FOLLOWS_SCRIPT;
}

/* Set ANCESTOR's script: the first word after the interpreter that is no option.  After python's
 * -m, that word is a module. */
static void read_script(struct ancestor *ancestor)
{
	const struct process *process = &ancestor->process;
	const char *end = process->command + process->command_length;
	const char *word = process->command + strlen(process->command) + 1;
	enum follows follows;

	while (word < end && *word == '-') {
		follows = what_follows(word, ancestor->is_shell);
		if (follows == FOLLOWS_CODE)
			return;
		word += strlen(word) + 1;
		if (follows == FOLLOWS_VALUE && word < end)
			word += strlen(word) + 1;
	}
	if (word < end && strncmp(word, "/dev/fd/", strlen("/dev/fd/")) != 0)
		copy_last_part(ancestor->script, word, strlen(word));
}

/* Read the process PID.  Returns false if it no longer exists. */
static bool read_ancestor(pid_t pid, struct ancestor *ancestor)
{
	char first[NAME_MAX + 1];
	enum interpreter interpreter;

	if (pid <= 0 || !process_read(pid, &ancestor->process))
		return false;
	ancestor->script[0] = '\0';
	read_program(ancestor);
	copy_last_part(first, ancestor->process.command, strlen(ancestor->process.command));
	interpreter = interpreter_called(ancestor->program);
	if (interpreter == NO_INTERPRETER)
		interpreter = interpreter_called(first);
	ancestor->is_shell = interpreter == SHELL;
	if (interpreter != NO_INTERPRETER)
		read_script(ancestor);
	return true;
}

static bool is_called(const struct ancestor *ancestor, const char *name)
{
	return strcmp(ancestor->process.name, name) == 0 || strcmp(ancestor->program, name) == 0 ||
	       (ancestor->script[0] != '\0' && strcmp(ancestor->script, name) == 0);
}

/* Is SHELL a copy of its PARENT: a subshell? */
static bool is_subshell(const struct ancestor *shell, const struct ancestor *parent)
{
	const struct process *one = &shell->process, *other = &parent->process;

	return shell->is_shell && strcmp(one->name, other->name) == 0 &&
	       one->command_length == other->command_length &&
	       memcmp(one->command, other->command, one->command_length) == 0;
}

pid_t ancestor_named(const char *name)
{
	struct ancestor ancestor, parent;

	if (!process_numbers_ours() || !read_ancestor(getppid(), &ancestor))
		return 0;
	while (!is_called(&ancestor, name))
		if (!read_ancestor(ancestor.process.parent, &ancestor))
			return 0;
	while (read_ancestor(ancestor.process.parent, &parent) && is_subshell(&ancestor, &parent))
		ancestor = parent;
	return ancestor.process.pid;
}

/* "4242 node (codex)" */
static void one_text(const struct ancestor *ancestor, char *text, size_t size)
{
	enum { COLUMNS = 40 };
	const char *script = ancestor->script;
	char name[4 * COLUMNS + 1], other[4 * COLUMNS + 1];

	if (script[0] == '\0' || strcmp(script, ancestor->process.name) == 0)
		script = ancestor->program;
	text_printable(name, sizeof name, ancestor->process.name, strlen(ancestor->process.name),
	    COLUMNS);
	text_printable(other, sizeof other, script, strlen(script), COLUMNS);
	if (other[0] == '\0' || strcmp(script, ancestor->process.name) == 0)
		snprintf(text, size, "%ld %s", (long)ancestor->process.pid, name);
	else
		snprintf(text, size, "%ld %s (%s)", (long)ancestor->process.pid, name, other);
}

void ancestors_text(char *text, size_t size)
{
	struct ancestor ancestor;
	char one[400];
	size_t used = 0;
	pid_t pid = process_numbers_ours() ? getppid() : 0;

	snprintf(text, size, "none that can be seen");
	for (; read_ancestor(pid, &ancestor); pid = ancestor.process.parent) {
		one_text(&ancestor, one, sizeof one);
		if (used + strlen(", ...") + strlen(", ") + strlen(one) >= size) {
			snprintf(text + used, size - used, ", ...");
			return;
		}
		used +=
		    (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ", one);
	}
}
