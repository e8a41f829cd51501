#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/token.h"

#define TOKEN_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

const char *token_held_name(const struct namefile *file, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%.240s.held", file->base);
	return name;
}

/* Under one name or the other; between the two looks it can have changed from the second
 * to the first. */
int token_open(const struct namefile *file)
{
	char held[NAME_SIZE];
	int fd = -1;

	token_held_name(file, held);
	for (int looks = 0; fd < 0 && looks < 100; looks++) {
		fd = openat(file->directory, looks % 2 == 0 ? file->base : held, TOKEN_FLAGS);
		if (fd < 0 && errno != ENOENT && errno != EINTR)
			break;
	}
	return fd;
}

/* Made under no name, and flocked: nobody can take it before it is certain that no other
 * has been away in the meantime. */
int token_make(struct lock *lock, struct why *why)
{
	struct namefile *file = lock->file;
	char held[NAME_SIZE], path[40];
	struct stat other;
	const char *from = path;
	int fd = namefile_create(file, lock->create_mode), result;

	if (fd < 0)
		return namefile_cannot_create(why, "cannot make the token");
	if (lock->exact_mode)
		fchmod(fd, lock->create_mode);
	flock(fd, LOCK_EX | LOCK_NB);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (file->temporary[0] != '\0')
		from = file->temporary;
	result = linkat(file->directory, from, file->directory, file->base, AT_SYMLINK_FOLLOW);
	if (result != 0 && errno != EEXIST)
		namefile_cannot_create(why, "cannot make the token");
	else if (result == 0 && fstatat(file->directory, token_held_name(file, held), &other, 0) == 0)
		unlinkat(file->directory, file->base, 0);
	if (file->temporary[0] != '\0')
		unlinkat(file->directory, file->temporary, 0);
	file->temporary[0] = '\0';
	close(fd);
	return result == 0 || errno == EEXIST ? 0 : -1;
}
