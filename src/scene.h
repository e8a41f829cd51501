/* scene.h - all that /proc says about one lock, at about one moment. */
#ifndef SEMLOCK_SCENE_H
#define SEMLOCK_SCENE_H

#include <stdbool.h>
#include <stddef.h>

#include "grips.h"
#include "lock.h"
#include "procfs.h"
#include "report.h"

enum { SCENE_LOCK, SCENE_QUEUE, SCENE_FILES };

/* A line of the kernel's list of locks that is about the lock's file, or its queue's. */
struct listed {
	struct procfs_lock lock;
	unsigned file;
	bool accounted; /* we know whose it is: for the use of whoever reads the scene */
};

struct scene {
	struct identity files[SCENE_FILES];
	struct {
		unsigned major, minor;
	} devices[SCENE_FILES]; /* as the kernel's list names them */
	unsigned nfiles; /* 0: the lock's file is not there; 1: nobody has had to queue */
	struct listed *listed;
	size_t nlisted;
	struct grips grips;
};

/* Look.  What changes while we look is not in it: a lock counts if it was listed before and
 * after.  Returns 0, or -1 with WHY filled: the file cannot be reached, or there is no list. */
int scene_take(struct scene *scene, const struct lock *lock, struct why *why);

/* The same for an open LOCK that is made of files: OBJECT is a descriptor of what its holder
 * has under flock(2), or -1. */
int scene_take_object(struct scene *scene, const struct lock *lock, int object, struct why *why);

void scene_forget(struct scene *scene);

#endif
