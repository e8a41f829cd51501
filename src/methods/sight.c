#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "methods/existing.h"
#include "methods/namefile.h"
#include "methods/sight.h"
#include "methods/token.h"

static int no_lock(const struct lock *lock, struct why *why)
{
	return why_say(why, TROUBLE_OPEN, "is no lock of method %s, which is %s",
	    lock->method->name, lock->file->object->what);
}

/* The record is read through a descriptor of its own, which may be of another file by now:
 * then it is looked at again. */
static bool read_record(const struct lock *lock, const char *name, struct sight *sight)
{
	const struct namefile *file = lock->file;
	int kind = file->object->type == S_IFDIR ? O_DIRECTORY : O_NONBLOCK;
	int fd = openat(file->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | kind);
	struct stat status;

	if (fd < 0)
		return errno == EACCES || errno == EPERM;
	sight->legible = true;
	file->object->read(fd, &sight->record);
	if (fstat(fd, &status) != 0)
		status = (struct stat){0};
	close(fd);
	return status.st_dev == sight->status.st_dev && status.st_ino == sight->status.st_ino;
}

/* 1: there; 0: not; -1 with WHY filled. */
static int see(const struct lock *lock, const char *name, struct sight *sight, struct why *why)
{
	const struct namefile *file = lock->file;

	for (int looks = 0; looks < 100; looks++) {
		sight_forget(sight);
		sight->local = file->local;
		sight->object = openat(file->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (sight->object < 0 && errno == ENOENT)
			return 0;
		if (sight->object < 0 || fstat(sight->object, &sight->status) != 0) {
			if (errno == ENOENT || errno == ESTALE)
				continue; /* over FUSE and NFS an open file, too, may be gone */
			return why_set(why, TROUBLE_OPEN, "cannot look at it");
		}
		if ((sight->status.st_mode & S_IFMT) != file->object->type)
			return no_lock(lock, why);
		sight->there = true;
		existing_note_linking(&sight->status);
		if (read_record(lock, name, sight))
			return 1;
	}
	return why_say(why, TROUBLE_OPEN, "cannot look at it: it changes all the time");
}

int namefile_peek(const struct lock *lock, struct sight *sight, struct why *why)
{
	*sight = (struct sight){.object = -1};
	return see(lock, lock->file->base, sight, why) < 0 ? -1 : 0;
}

int symlink_peek(const struct lock *lock, struct sight *sight, struct why *why)
{
	const struct namefile *file = lock->file;
	char target[RECORD_LIMIT + 1];
	ssize_t length = readlinkat(file->directory, file->base, target, sizeof target);

	*sight = (struct sight){.object = -1, .local = file->local};
	if (length < 0 && errno == EINVAL)
		return no_lock(lock, why);
	if (length < 0 && errno != ENOENT)
		return why_set(why, TROUBLE_OPEN, "cannot look at it");
	if (length < 0)
		return 0;
	if (fstatat(file->directory, file->base, &sight->status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : why_set(why, TROUBLE_OPEN, "cannot look at it");
	sight->there = sight->legible = true;
	record_read(&sight->record, target, (size_t)length);
	return 0;
}

/* The token is away under the one name, or at home under the other; and in the middle of a
 * rename it is to be seen under neither. */
int rename_peek(const struct lock *lock, struct sight *sight, struct why *why)
{
	const struct namefile *file = lock->file;
	char held[NAME_SIZE];
	struct stat token;
	int there;

	*sight = (struct sight){.object = -1};
	for (int looks = 0; looks < 100; looks++) {
		there = see(lock, token_held_name(file, held), sight, why);
		if (there > 0 && sight->record.kind != RECORD_FULL)
			existing_note_naming(&sight->status);
		if (there != 0)
			return there < 0 ? -1 : 0;
		if (token_is_there(file, file->base, &token))
			return S_ISREG(token.st_mode) ? 0 : no_lock(lock, why);
		if (token_find_away(file, "", held) > 0 &&
		    token_is_there(file, held, &sight->status)) {
			sight->there = sight->legible = true;
			token_read_name(file, held, &sight->record);
			return 0;
		}
	}
	return why_say(why, TROUBLE_OPEN,
	    "there is no token, neither under this name nor with .held behind it");
}

void sight_forget(struct sight *sight)
{
	if (sight->object >= 0)
		close(sight->object);
	*sight = (struct sight){.object = -1};
}
