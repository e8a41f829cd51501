/* SPDX-License-Identifier: MIT */
/* /proc/locks:   "7: FLOCK  ADVISORY  WRITE 4711 fe:00:262402 0 EOF", and for each that waits
 *                behind it "7: -> FLOCK  ADVISORY  WRITE 4712 fe:00:262402 0 EOF"
 * fdinfo/N:      "lock:\t1: OFDLCK ADVISORY  READ  -1 fe:00:262402 0 9" and "mnt_id:\t27"
 * stat:          "4711 (rsync) S 4710 ..." with the start in field 22
 * mountinfo:     "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw" */
#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/proc.h"

static unsigned kind_named(const char *name)
{
	if (strcmp(name, "FLOCK") == 0)
		return KIND_FLOCK;
	if (strcmp(name, "OFDLCK") == 0)
		return KIND_OFD;
	return strcmp(name, "POSIX") == 0 ? KIND_POSIX : 0;
}

bool procfs_lock_line(const char *line, struct procfs_lock *lock)
{
	char kind[16], mode[16], last[24];
	const char *rest = strchr(line, ':');

	if (strncmp(line, "lock:", 5) == 0)
		rest = strchr(line + 5, ':');
	if (rest == NULL)
		return false;
	*lock = (struct procfs_lock){0};
	rest += 1 + strspn(rest + 1, " \t");
	if (strncmp(rest, "->", 2) == 0) {
		lock->waiting = true;
		rest += 2;
	}
	if (sscanf(rest, "%15s %*s %15s %ld %x:%x:%llu %lld %23s", kind, mode, &lock->pid,
		&lock->major, &lock->minor, &lock->inode, &lock->first, last) != 8)
		return false;
	lock->kind = kind_named(kind);
	lock->exclusive = strcmp(mode, "WRITE") == 0;
	lock->last = strcmp(last, "EOF") == 0 ? LLONG_MAX : strtoll(last, NULL, 10);
	return lock->kind != 0;
}

bool procfs_same_lock(const struct procfs_lock *earlier, const struct procfs_lock *later)
{
	return later->kind == earlier->kind && later->waiting == earlier->waiting &&
	       later->exclusive == earlier->exclusive && (later->pid == earlier->pid || later->pid == 0) &&
	       later->first == earlier->first && later->last == earlier->last;
}

bool procfs_stat(const char *text, struct procfs_stat *stat)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	size_t length;
	long threads;

	if (open == NULL || close == NULL || close < open)
		return false;
	length = (size_t)(close - open - 1);
	if (length >= sizeof stat->name)
		length = sizeof stat->name - 1;
	memcpy(stat->name, open + 1, length);
	stat->name[length] = '\0';
	if (sscanf(close + 1,
		" %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
		&stat->state, &stat->parent, &threads, &stat->started) != 4)
		return false;
	if (stat->state == 'Z' && threads > 1)
		stat->state = 'S'; /* the main thread called pthread_exit(), the others run on */
	return true;
}

bool procfs_ended(char state)
{
	return state == 'Z' || state == 'X';
}

/* The text after KEY at the start of a line; NULL: none. */
static const char *line_value(const char *text, const char *key)
{
	size_t length = strlen(key);

	while (text != NULL && strncmp(text, key, length) != 0) {
		text = strchr(text, '\n');
		text = text == NULL ? NULL : text + 1;
	}
	return text == NULL ? NULL : text + length;
}

uid_t procfs_user(const char *text, uid_t *real)
{
	const char *value = line_value(text, "Uid:");
	unsigned real_user, user;

	*real = (uid_t)-1;
	if (value == NULL || sscanf(value, "%u %u", &real_user, &user) != 2)
		return (uid_t)-1;
	*real = (uid_t)real_user;
	return (uid_t)user;
}

int procfs_mount_id(const char *text)
{
	const char *value = line_value(text, "mnt_id:");
	int id;

	return value != NULL && sscanf(value, "%d", &id) == 1 ? id : -1;
}

/* "\040" is a blank; tab, newline and backslash are written likewise. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

bool procfs_mount_line(const char *line, struct procfs_mount *mount)
{
	const char *dash = strstr(line, " - ");
	char of_mount[512], of_filesystem[512] = "";

	if (dash == NULL ||
	    sscanf(line, "%d %*d %u:%u %*s %255s %511s", &mount->id, &mount->major, &mount->minor,
		mount->point, of_mount) != 5 ||
	    sscanf(dash, " - %63s %255s %511s", mount->type, mount->source, of_filesystem) < 2)
		return false;
	unescape(mount->point);
	unescape(mount->source);
	snprintf(mount->options, sizeof mount->options, "%s,%s", of_mount, of_filesystem);
	return true;
}
