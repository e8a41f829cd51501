/* methods/file/namefile.h - what the methods share whose lock is a name in a directory.
 *
 * All calls are relative to one descriptor of that directory: immune to chdir, and to a
 * renaming of the directory itself. */
#ifndef SEMLOCK_METHODS_FILE_NAMEFILE_H
#define SEMLOCK_METHODS_FILE_NAMEFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "methods/file/owner_record.h"
#include "methods/file/process_alive.h"
#include "lock/lock.h"
#include "lock/method.h"

enum { NAME_SIZE = 256 };

struct namefile {
	const struct object *object; /* how this method's lock is made */
	int directory;
	const char *base; /* the lock's name in it */
	bool local;       /* the file system is this kernel's alone: locks and boots can be believed */
	bool held;
	bool ready;     /* our object is made, flocked, and names the command */
	bool inherited; /* ... which was started after it was made, and has its descriptor */
	bool named;     /* an object without any name does not work here */
	char temporary[NAME_SIZE]; /* the name that our object has until it gets the lock's; "" */
	struct record record;      /* what our object says */
	int second;   /* where flock(2) depends on the name: the lock, opened by its name; -1 */
	int notify;   /* changes in the directory, while a stranger holds the lock; -1 */
	int64_t pause; /* how long to wait at most for word of a stranger */
	char away[NAME_SIZE]; /* the name that our token has while we hold it; methods/unique.c */
	unsigned beats;       /* signs of life that we have given under it */
};

/* What is different between one kind of lock object and another. */
struct object {
	const char *what; /* "a regular file", for messages */
	mode_t type;      /* S_IFREG or S_IFDIR */

	/* Make ours, unpublished, and set LOCK->fd. */
	int (*make)(struct lock *lock, struct error *error);
	/* Write FILE->record into it. */
	int (*write)(struct lock *lock, struct error *error);
	/* Give it the lock's name: TAKEN; AGAIN when that is taken; FAILED. */
	enum outcome (*publish)(struct lock *lock, struct error *error);
	/* Read the record of the one that FD is. */
	void (*read)(int fd, struct record *record);
	/* Remove the name, which means the one that FD is.  Returns 0 or -1 with errno set. */
	int (*remove)(struct lock *lock, int fd);
	/* Let go what is held; NULL: as namefile.c does with the functions above.  Those who have
	 * their own have their own take as well, and none of the others. */
	void (*let_go)(struct lock *lock);
};

/* Split LOCK's name, open the directory, and make LOCK->file, for OBJECT. */
int namefile_open(struct lock *lock, const struct object *object, struct error *error);

/* Open the directory that LOCK's name is in, and note what it is.  Returns 0, or -1 with ERROR filled. */
int namefile_open_directory(struct lock *lock, struct error *error);

/* Does LOCK's name still lead into that directory? */
bool namefile_current(const struct lock *lock);

/* The method's take, prepare, idle, owned, beat and release, for all methods with a struct object. */
enum outcome namefile_take(struct lock *lock, enum wait wait, struct error *error);
int namefile_prepare(struct lock *lock, struct error *error);
bool namefile_idle(struct lock *lock);
bool namefile_owned(struct lock *lock);
void namefile_beat(struct lock *lock);
void namefile_release(struct lock *lock);
int namefile_drop(struct lock *lock, struct error *error);

/* All that in a struct method; beside it, what is a method's own. */
#define NAMEFILE_FUNCTIONS \
	.take = namefile_take, .drop = namefile_drop, .prepare = namefile_prepare, \
	.idle = namefile_idle, .inspect = namefile_inspect, .listen = foreign_holder_listen, \
	.current = namefile_current, .owned = namefile_owned, .beat = namefile_beat, .release = namefile_release

/* Start the command, unless that is done, and fill FILE->record with what there is to say
 * of it.  Returns 0, or -1 with ERROR filled. */
int namefile_describe(struct lock *lock, struct error *error);

/* Close and free all that is left.  Copes with any half-filled state. */
void namefile_forget(struct lock *lock);

/* Does NAME in the directory still mean what FD is? */
bool namefile_same(const struct namefile *file, const char *name, int fd);

/* Flock FD, which is under the lock's name already and not written yet.  TAKEN; AGAIN: it
 * has been taken away meanwhile; FAILED: somebody keeps it flocked. */
enum outcome namefile_claim(const struct lock *lock, int fd, struct error *error);

/* FD, made under the lock's own name, is our object from now on instead of what we had. */
void namefile_replace(struct lock *lock, int fd);

/* Cannot make something of ours in the directory: errno says why. */
int namefile_cannot_create(struct error *error, const char *what);

/* A file in the directory that is ours alone, without a name, or else with the one that it
 * puts into FILE->temporary.  Returns its descriptor, or -1 with errno set. */
int namefile_create(struct namefile *file, mode_t mode);

/* A name for an object of ours that has not got the lock's name yet, or not any more, into
 * FILE->temporary; WHAT ("semlock", "gone") is a part of it. */
void namefile_temporary(struct namefile *file, const char *what);

/* A number that nobody can foretell. */
uint32_t namefile_random(void);

/* Remove what killed semlocks have left under such names. */
void namefile_sweep(const struct lock *lock);

/* The time by the clock of the directory's own file system, in ns since 1970: the lock's
 * age must not depend on whose clock is right.  -1: unknown. */
int64_t namefile_now(const struct namefile *file);
int64_t namefile_mtime(const struct stat *status);

/* Read up to SIZE bytes of FD's beginning; returns how many. */
size_t namefile_slurp(int fd, char *text, size_t size);

#endif
