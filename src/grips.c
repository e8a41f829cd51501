#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_SYS_SYSCALL_H
#include <sys/syscall.h>
#endif

#include "grips.h"
#include "process.h"

static void add(struct grips *grips, const struct grip *grip)
{
	struct grip *list = grips->list;

	if ((grips->count & (grips->count - 1)) == 0) /* full at each power of two */
		list = realloc(list, (grips->count == 0 ? 1 : 2 * grips->count) * sizeof *list);
	if (list == NULL) {
		grips->failed = true;
		return;
	}
	grips->list = list;
	list[grips->count++] = *grip;
}

/* The locks that GRIP's descriptor carries; GRIP alone when it carries none. */
static void add_locks(struct grips *grips, struct grip grip)
{
	char path[64], text[8192], *line, *rest;
	bool any = false;

	snprintf(path, sizeof path, "/proc/%ld/fdinfo/%d", (long)grip.pid, grip.fd);
	if (process_file(path, text, sizeof text) < 0)
		return; /* closed meanwhile, or ended */
	grip.locked = true;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (procfs_lock_line(line, &grip.lock)) {
			add(grips, &grip);
			any = true;
		}
	grip.locked = false;
	if (!any)
		add(grips, &grip);
}

void grips_of(struct grips *grips, pid_t pid, const struct identity *files, unsigned count)
{
	char path[64];
	struct dirent *entry;
	struct stat file;
	DIR *open;

	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	open = opendir(path);
	if (open == NULL) {
		grips->blind = grips->blind || errno == EACCES || errno == EPERM;
		return;
	}
	errno = 0;
	while ((entry = readdir(open)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    fstatat(dirfd(open), entry->d_name, &file, 0) != 0)
			continue;
		for (unsigned i = 0; i < count; i++)
			if (file.st_ino == files[i].inode && file.st_dev == files[i].device)
				add_locks(grips, (struct grip){
						     .pid = pid,
						     .fd = (int)strtol(entry->d_name, NULL, 10),
						     .file = i,
						 });
		errno = 0;
	}
	grips->blind = grips->blind || errno == EACCES || errno == EPERM;
	closedir(open);
}

struct walk {
	struct grips *grips;
	const struct identity *files;
	unsigned count;
};

static bool look_into(pid_t pid, void *context)
{
	struct walk *walk = context;

	grips_of(walk->grips, pid, walk->files, walk->count);
	return true;
}

void grips_find(struct grips *grips, const struct identity *files, unsigned count)
{
	struct walk walk = {grips, files, count};

	*grips = (struct grips){0};
	process_each(look_into, &walk);
}

void grips_forget(struct grips *grips)
{
	free(grips->list);
	*grips = (struct grips){0};
}

int grips_same_description(pid_t p, int a, pid_t q, int b)
{
	if (p == q && a == b)
		return 1;
#if HAVE_DECL_SYS_KCMP
	const int kcmp_file = 0; /* <linux/kcmp.h> is not everywhere */
	long order = syscall(SYS_kcmp, p, q, kcmp_file, (unsigned long)a, (unsigned long)b);

	return order < 0 ? -1 : order == 0;
#else
	return -1;
#endif
}
