/* holds.h - who holds a kernel lock. */
#ifndef SEMLOCK_HOLDS_H
#define SEMLOCK_HOLDS_H

#include "occupants.h"
#include "scene.h"

/* Add those who hold it to FOUND, which is empty, and mark their lines in SCENE as accounted
 * for.  A watcher and its command, and whatever the command has started, are one holder. */
void holds_add(struct occupants *found, struct scene *scene, unsigned kinds);

#endif
