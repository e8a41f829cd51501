#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "queuefile.h"
#include "scene.h"

/* O_PATH: to open it in earnest could hang (a FIFO), be forbidden, or, where we have a
 * process's own lock on it, drop that lock at the close. */
static int identify(struct scene *scene, unsigned file, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat stat;

	if (fd < 0)
		return -1;
	if (fstat(fd, &stat) != 0) {
		close(fd);
		return -1;
	}
	scene->files[file] = (struct identity){stat.st_dev, stat.st_ino};
	mounts_device(fd, stat.st_dev, &scene->devices[file].major, &scene->devices[file].minor);
	close(fd);
	scene->nfiles = file + 1;
	return 0;
}

static bool is_about(const struct scene *scene, unsigned file, const struct procfs_lock *lock)
{
	return lock->inode == (unsigned long long)scene->files[file].inode &&
	       lock->major == scene->devices[file].major &&
	       lock->minor == scene->devices[file].minor;
}

static bool append(struct scene *scene, const struct listed *entry)
{
	struct listed *list = scene->listed;

	if ((scene->nlisted & (scene->nlisted - 1)) == 0)
		list = realloc(list, (scene->nlisted == 0 ? 1 : 2 * scene->nlisted) * sizeof *list);
	if (list == NULL)
		return false;
	scene->listed = list;
	list[scene->nlisted++] = *entry;
	return true;
}

/* What /proc/locks has about our files, in its order. */
static int read_list(struct scene *scene, struct why *why)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	struct listed entry = {0};

	if (locks == NULL)
		return why_set(why, TROUBLE_UNAVAILABLE,
		    "this system does not tell who holds a lock: cannot read /proc/locks");
	while (fgets(line, sizeof line, locks) != NULL) {
		if (!procfs_lock_line(line, &entry.lock))
			continue;
		for (entry.file = 0; entry.file < scene->nfiles; entry.file++)
			if (is_about(scene, entry.file, &entry.lock) && !append(scene, &entry)) {
				fclose(locks);
				return why_set(why, TROUBLE_SYSTEM, "no memory");
			}
	}
	fclose(locks);
	return 0;
}

static bool same_lock(const struct listed *a, const struct listed *b)
{
	return a->file == b->file && a->lock.kind == b->lock.kind &&
	       a->lock.waiting == b->lock.waiting && a->lock.exclusive == b->lock.exclusive &&
	       a->lock.pid == b->lock.pid && a->lock.first == b->lock.first &&
	       a->lock.last == b->lock.last;
}

/* Of the list in SCENE, keep what is in EARLIER as well, once for once. */
static void keep_common(struct scene *scene, struct scene *earlier)
{
	size_t kept = 0, j;

	for (size_t i = 0; i < scene->nlisted; i++) {
		for (j = 0; j < earlier->nlisted; j++)
			if (!earlier->listed[j].accounted &&
			    same_lock(&scene->listed[i], &earlier->listed[j]))
				break;
		if (j == earlier->nlisted)
			continue;
		earlier->listed[j].accounted = true;
		scene->listed[kept++] = scene->listed[i];
	}
	scene->nlisted = kept;
}

static int look(struct scene *scene, struct why *why)
{
	struct scene earlier = *scene;
	int result = read_list(&earlier, why);

	if (result == 0) {
		grips_find(&scene->grips, scene->files, scene->nfiles);
		result = read_list(scene, why);
		keep_common(scene, &earlier);
	}
	free(earlier.listed);
	return result;
}

static const char *descriptor_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}

int scene_take(struct scene *scene, const struct lock *lock, struct why *why)
{
	char descriptor[32], queue[QUEUE_PATH_SIZE];
	struct lock copy = *lock;

	*scene = (struct scene){0};
	if (identify(scene, SCENE_LOCK,
		lock->name != NULL ? lock->name : descriptor_path(lock->fd, descriptor)) != 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		return why_set(why, TROUBLE_OPEN, "cannot look at it");
	}
	copy.device = scene->files[SCENE_LOCK].device;
	copy.inode = scene->files[SCENE_LOCK].inode;
	queuefile_path(&copy, queue);
	identify(scene, SCENE_QUEUE, queue);
	return look(scene, why);
}

/* Without an object the lock's place stays empty, and nothing in the list is about it. */
int scene_take_object(struct scene *scene, const struct lock *lock, int object, struct why *why)
{
	char descriptor[32], queue[QUEUE_PATH_SIZE];

	*scene = (struct scene){0};
	if (object >= 0 && identify(scene, SCENE_LOCK, descriptor_path(object, descriptor)) != 0)
		return why_set(why, TROUBLE_OPEN, "cannot look at it");
	queuefile_path(lock, queue);
	identify(scene, SCENE_QUEUE, queue);
	return look(scene, why);
}

void scene_forget(struct scene *scene)
{
	grips_forget(&scene->grips);
	free(scene->listed);
	*scene = (struct scene){0};
}
