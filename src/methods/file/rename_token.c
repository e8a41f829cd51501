#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/retry.h"
#include "sys/rename_noreplace.h"
#include "methods/file/rename_token.h"

#define TOKEN_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

const char *rename_token_held_name(const struct file_lock *file, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%.240s.held", file->base);
	return name;
}

/* The token can move from the second name to the first between two looks. */
int rename_token_open(const struct file_lock *file)
{
	char held[NAME_SIZE];
	int fd = -1;

	rename_token_held_name(file, held);
	for (int looks = 0; fd < 0 && looks < 100; looks++) {
		fd = openat(file->directory, looks % 2 == 0 ? file->base : held, TOKEN_FLAGS);
		if (fd < 0 && errno != ENOENT && errno != EINTR)
			break;
	}
	return fd;
}

/* The new token is flocked before it has its name: no process can take it until we know that there is
 * no other token away. */
int rename_token_make(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->file;
	char held[NAME_SIZE], path[40];
	struct stat other;
	const char *from = path;
	int fd = lockdir_create_file(file, lock->create_mode), result;

	if (fd < 0)
		return lockdir_cannot_create(error, "cannot make the token");
	if (lock->exact_mode)
		fchmod(fd, lock->create_mode);
	call_try_flock(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (file->temporary[0] != '\0')
		from = file->temporary;
	UNINTERRUPTED(result, linkat(file->directory, from, file->directory, file->base, AT_SYMLINK_FOLLOW));
	if (result != 0 && errno != EEXIST)
		lockdir_cannot_create(error, "cannot make the token");
	else if (result == 0 && fstatat(file->directory, rename_token_held_name(file, held), &other, 0) == 0)
		call_unlink(file->directory, file->base, 0);
	if (file->temporary[0] != '\0')
		call_unlink(file->directory, file->temporary, 0);
	file->temporary[0] = '\0';
	close(fd);
	return result == 0 || errno == EEXIST ? 0 : -1;
}

/* Without RENAME_NOREPLACE our flock on the only token keeps others from making TO between the look
 * and the call. */
int rename_token_move(const struct file_lock *file, const char *from, const char *to)
{
	struct stat other;
	int result;

	UNINTERRUPTED(result, FAULT_POINT("rename.rename") ? -1 : rename_noreplace(file->directory, from, to));
	if (result == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(file->directory, to, &other, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return call_rename(file->directory, from, to);
}

/* RECORD_FULL: a record that was not erased; RECORD_PID: a script's. */
int rename_token_check(const struct lock *lock, struct error *error)
{
	const int64_t longest_pid = 16;
	struct record record;
	struct stat status;

	lock->file->object->read(lock->fd, &record);
	if (record.kind == RECORD_EMPTY || record.kind == RECORD_FULL ||
	    (record.kind == RECORD_PID && record.host[0] == '\0' &&
		fstat(lock->fd, &status) == 0 && status.st_size <= longest_pid))
		return 0;
	return error_say(error, ERROR_OPEN,
	    "is no token: there is something in it that would be lost; left alone");
}

/* ---- unique names: see unique.c ---- */

bool rename_token_is_there(const struct file_lock *file, const char *name, struct stat *status)
{
	return fstatat(file->directory, name, status, AT_SYMLINK_NOFOLLOW) == 0;
}

int rename_token_name(const struct file_lock *file, unsigned beats, char name[NAME_SIZE],
    struct error *error)
{
	const struct record *record = &file->record;
	int length = snprintf(name, NAME_SIZE, "%s.held.%ld.%llu.%s.%llu.%x.%08x.%s", file->base,
	    (long)record->pid, (unsigned long long)record->start, record->boot,
	    (unsigned long long)record->pidns, beats, (unsigned)lockdir_random(), record->host);

	if (length >= NAME_SIZE) {
		errno = ENAMETOOLONG;
		return error_set(error, ERROR_OPEN, "cannot have a name beside it");
	}
	for (char *p = name; (p = strchr(p, '/')) != NULL;)
		*p = '?'; /* in the host's name */
	return 0;
}

void rename_token_read_name(const struct file_lock *file, const char *name, struct record *record)
{
	const char *rest = name + strlen(file->base) + strlen(".held");
	unsigned long long start, pidns;
	unsigned beats, random;
	long pid;

	*record = (struct record){.kind = RECORD_JUNK};
	if (sscanf(rest, ".%ld.%llu.%39[^.].%llu.%x.%8x.%64s", &pid, &start, record->boot, &pidns,
		&beats, &random, record->host) != 7)
		return;
	record->kind = RECORD_FULL;
	record->pid = (pid_t)pid;
	record->start = start;
	record->pidns = pidns;
}

/* LOCK.held.old and the like are other files, and no tokens. */
static bool is_away_name(const struct file_lock *file, const char *name)
{
	size_t length = strlen(file->base);
	struct record record;

	if (strncmp(name, file->base, length) != 0 || strncmp(name + length, ".held", 5) != 0)
		return false;
	if (name[length + 5] == '\0')
		return true;
	rename_token_read_name(file, name, &record);
	return record.kind == RECORD_FULL;
}

/* NFS: readdir(3) can list what is gone: each name is looked up. */
int rename_token_find_away(const struct file_lock *file, const char *but, char found[NAME_SIZE])
{
	DIR *directory = lockdir_list(file->directory);
	const struct dirent *entry;
	struct stat status;
	int result = 0;

	if (directory == NULL)
		return -1;
	while (result == 0 && (entry = readdir(directory)) != NULL)
		if (is_away_name(file, entry->d_name) && strcmp(entry->d_name, but) != 0 &&
		    rename_token_is_there(file, entry->d_name, &status)) {
			snprintf(found, NAME_SIZE, "%.255s", entry->d_name);
			result = 1;
		}
	closedir(directory);
	return result;
}
