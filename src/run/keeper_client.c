/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/other_semlock.h"
#include "run/keeper_client.h"
#include "run/keeper_state.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/listeners.h"
#include "sys/process.h"

/* Is the process at the other end of CONNECTION the one that ID names?  Any process may listen on a
 * socket of this name after that has ended. */
static int check_keeper(int connection, const struct hold_id *id, struct error *error)
{
	struct ucred peer = {.pid = 0};
	socklen_t length = sizeof peer;
	struct procfs_stat stat;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot see which process holds it");
	if (peer.uid != geteuid() && geteuid() != 0)
		return error_plain(error, ERROR_PERMISSION, "this hold belongs to user %lu",
		    (unsigned long)peer.uid);
	if (peer.pid != id->pid ||
	    (id->started != 0 && process_numbers_ours() && process_stat(peer.pid, &stat) &&
		stat.started != id->started))
		return error_plain(error, ERROR_PERMISSION,
		    "another process answers for it, or one of another PID namespace");
	return 0;
}

/* Does the process that ID names live? */
static bool lives(const struct hold_id *id)
{
	struct procfs_stat stat;

	return id->started != 0 && process_numbers_ours() && process_stat(id->pid, &stat) &&
	       stat.started == id->started;
}

/* An abstract socket is known in one network namespace. */
static bool is_in_other_network(pid_t pid)
{
	struct stat own, its;
	char path[40];

	snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)pid);
	return stat("/proc/self/ns/net", &own) == 0 && stat(path, &its) == 0 &&
	       (own.st_dev != its.st_dev || own.st_ino != its.st_ino);
}

/* No process listens for the hold ID.  Returns -1 with ERROR filled: what is known. */
static int nobody_answers(const struct hold_id *id, struct error *error)
{
	struct process keeper;

	if (lives(id) && is_in_other_network(id->pid))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "process %ld, which keeps it, is in another network namespace: call there "
		    "(nsenter -t %ld -n)",
		    (long)id->pid, (long)id->pid);
	if (lives(id) && geteuid() != 0 && process_read(id->pid, &keeper) &&
	    keeper.user != geteuid())
		return error_plain(error, ERROR_PERMISSION, "this hold belongs to user %lu",
		    (unsigned long)keeper.user);
	return error_plain(error, ERROR_LOST,
	    "this hold has ended before: it was released, its process, its time or its lock was "
	    "over, or a process of it was killed");
}

int keeper_connect(const char *text, const struct hold_id *id, int seconds, struct error *error)
{
	struct sockaddr_un address;
	const socklen_t length = hold_id_address(text, &address);
	const struct timeval most = {.tv_sec = seconds};
	const struct timeval most_to_connect = {.tv_sec = seconds > 0 ? seconds : 10};
	int connection =
	    descriptor_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	int result;

	if (connection < 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a socket");
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &most_to_connect, sizeof most_to_connect);
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	UNINTERRUPTED(result, connect(connection, (struct sockaddr *)&address, length));
	if (result != 0 && errno == ECONNREFUSED)
		nobody_answers(id, error);
	else if (result != 0 && errno == EAGAIN)
		error_plain(error, ERROR_UNAVAILABLE,
		    "process %ld, which keeps it, does not answer: is it stopped?", (long)id->pid);
	else if (result != 0)
		error_set(error, ERROR_SYSTEM, "cannot ask for this hold");
	else if (check_keeper(connection, id, error) == 0)
		return connection;
	close(connection);
	return -1;
}

/* The name of REQUEST's lock for the keeper, of hold_lock_name().  Where its directory was removed,
 * it is as it was given: the keeper knows it by its last part.  Returns 0, or -1 with ERROR
 * filled. */
static int name_lock(const struct request *request, char name[PATH_MAX + 1], struct error *error)
{
	const char *given = request->locks[0].name;

	if (hold_lock_name(given, name, error) == 0)
		return 0;
	if ((error->errnum != ENOENT && error->errnum != ENOTDIR) || strlen(given) > PATH_MAX)
		return -1;
	strcpy(name, given);
	return 0;
}

int keeper_call(const struct request *request, const char *id, const char *word,
    struct error *error)
{
	char name[PATH_MAX + 1], message[KEEPER_MESSAGE + 1];
	struct hold_id parsed;
	int connection, length;
	ssize_t sent;

	if (!hold_id_parse(id, &parsed))
		return error_plain(error, ERROR_USAGE,
		    "this is not the ID of a hold: --detach prints it, and --who shows it");
	if (name_lock(request, name, error) != 0)
		return -1;
	connection = keeper_connect(id, &parsed, 0, error);
	if (connection < 0)
		return -1;
	length = snprintf(message, sizeof message, "%s %s", word, name);
	UNINTERRUPTED(sent, send(connection, message, (size_t)length, MSG_NOSIGNAL));
	/* if it has been killed meanwhile, there is no answer */
	if (sent == length || errno == EPIPE || errno == ECONNRESET)
		return connection;
	error_set(error, ERROR_SYSTEM, "cannot ask for this hold");
	close(connection);
	return -1;
}

int keeper_answer(char *answer, char **text, struct error *error)
{
	const long status = strtol(answer, text, 10);

	*text += strspn(*text, " ");
	if (status == EXIT_SUCCESS)
		return 0;
	if (status == EXIT_LOST)
		return error_plain(error, ERROR_LOST, "this hold has ended before: %s", *text);
	return error_plain(error, (enum kind)status, "%s", *text);
}

/* ---- is it our own? ---- */

struct own_search {
	const char *question;
	struct own_hold *hold;
	struct deadline deadline;
};

static bool is_ours(pid_t owner)
{
	return owner > 1 && (owner == getpid() || process_descends(getpid(), owner, 0, 0));
}

/* Only of this user's processes: another one's may leave us without an answer, as a stopped one
 * does.  And only where its command line, which is that of the call that has begun the hold, may
 * name an ancestor: a hold is not to be woken by each wait of its user. */
static bool is_worth_asking(pid_t pid)
{
	struct process keeper;
	struct procfs_stat stat;
	struct other_semlock begun;

	if (!process_read(pid, &keeper) || keeper.user != geteuid() || !process_stat(pid, &stat) ||
	    stat.state == 'T' || stat.state == 't')
		return false;
	return !other_semlock_read(keeper.command, keeper.command_length, &begun) ||
	       is_ours(begun.holds_for);
}

static bool ask_for_owner(const char *name, void *context)
{
	struct own_search *search = context;
	struct hold_id id;
	const char *text = hold_id_of_socket(name, &id);
	struct error ignored;
	char answer[KEEPER_MESSAGE + 1] = "";
	int connection;
	ssize_t got;
	long owner;

	if (deadline_left(&search->deadline) == 0)
		return false;
	if (text == NULL || !is_worth_asking(id.pid))
		return true;
	connection = keeper_connect(text, &id, 1, &ignored);
	if (connection < 0)
		return true;
	UNINTERRUPTED(got,
	    send(connection, search->question, strlen(search->question), MSG_NOSIGNAL));
	UNINTERRUPTED(got, recv(connection, answer, KEEPER_MESSAGE, 0));
	close(connection);
	if (got <= 0 || sscanf(answer, "0 %ld", &owner) != 1 || !is_ours((pid_t)owner))
		return true;
	search->hold->owner = (pid_t)owner;
	snprintf(search->hold->id, sizeof search->hold->id, "%s", text);
	return false;
}

bool own_hold_find(const struct lock *lock, struct own_hold *hold)
{
	char name[PATH_MAX + 1], question[KEEPER_MESSAGE + 1];
	struct own_search search = {
	    .question = question,
	    .hold = hold,
	    .deadline = deadline_after(SECOND), /* the wait begins after it */
	};
	struct error ignored;

	hold->owner = 0;
	/* another holder's slot may come free */
	if (lock->spec->name == NULL || lock->spec->slots > 0 || !process_numbers_ours() ||
	    hold_lock_name(lock->spec->name, name, &ignored) != 0)
		return false;
	snprintf(question, sizeof question, KEEPER_OWNER " %s %s", lock->spec->method->name, name);
	listeners_each(ask_for_owner, &search);
	return hold->owner != 0;
}
