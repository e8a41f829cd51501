#include <config.h>

#include <sys/stat.h>
#include <unistd.h>

#include "sys/open_fds.h"
#include "lock/queuefile.h"
#include "run/transit.h"

static bool others_wait(const struct owners *found)
{
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid != getpid())
			return true;
	return false;
}

/* Has PID a ticket in the queue in FILE?  *BLIND: its descriptors may not be seen. */
static bool has_ticket(pid_t pid, const struct identity *file, bool *blind)
{
	struct open_fds open_fds = {0};
	bool ticket = false;

	open_fds_of(&open_fds, pid, file, 1);
	*blind = *blind || open_fds.blind;
	for (size_t i = 0; i < open_fds.count; i++)
		ticket = ticket || (open_fds.list[i].locked && open_fds.list[i].lock.exclusive);
	open_fds_forget(&open_fds);
	return ticket;
}

/* In the form with a descriptor, it is not the script that has the ticket, but its child. */
bool transit_seen(const struct owners *found, const struct owner *holder, const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	struct stat queue;
	struct identity file;
	bool blind = holder->process.pid == 0;

	queuefile_path(lock, path);
	if (stat(path, &queue) != 0)
		return false;
	file = (struct identity){queue.st_dev, queue.st_ino};
	if (!blind && has_ticket(holder->process.pid, &file, &blind))
		return true;
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid != getpid() && /* a caller's descriptor, inherited */
		    has_ticket(holder->members[i].pid, &file, &blind))
			return true;
	return blind && others_wait(found);
}
