/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hold/keeper_client.h"
#include "hold/sandbox.h"
#include "hold/keeper.h"
#include "report/text.h"
#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/listeners.h"
#include "sys/process.h"
#include "sys/waiting.h"

#define OUTSIDE "make this call outside of it, or where the hold was begun"

/* Does the process that ID names live? */
static bool keeper_lives(const struct hold_id *id)
{
	struct procfs_stat seen;

	return id->started != 0 && process_numbers_ours() && process_stat(id->pid, &seen) &&
	       seen.started == id->started;
}

/* Is process PID in another network namespace?  An abstract socket is visible only in its own. */
static bool is_in_other_network(pid_t pid)
{
	struct stat own, its;
	char path[40];

	snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)pid);
	return stat("/proc/self/ns/net", &own) == 0 && stat(path, &its) == 0 &&
	       !same_file(identity_of(&own), identity_of(&its));
}

/* No process listens for the hold ID: fill ERROR with what is known of the reason.  Returns -1. */
static int nobody_answers(const struct hold_id *id, struct error *error)
{
	struct process keeper;

	if (keeper_lives(id) && is_in_other_network(id->pid))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "process %ld, which keeps it, is in another network namespace: call there "
		    "(nsenter -t %ld -n)",
		    (long)id->pid, (long)id->pid);
	if (keeper_lives(id) && geteuid() != 0 && process_read(id->pid, &keeper) &&
	    keeper.user != geteuid())
		return error_plain(error, ERROR_PERMISSION, "this hold belongs to user %lu",
		    (unsigned long)keeper.user);
	/* A keeper in another network and PID namespace is as invisible as one that has ended. */
	if (!process_sees_all())
		return error_plain(error, ERROR_LOST,
		    "no such hold (already released or ended, or begun outside of this container)");
	return error_plain(error, ERROR_LOST, "no such hold (already released or ended)");
}

/* Fill ERROR for the errno of a connect(2) that has failed.  Returns -1. */
static int cannot_connect(const struct hold_id *id, struct error *error)
{
	switch (errno) {
	case ECONNREFUSED:
		return nobody_answers(id, error);
	case EAGAIN:
		return error_plain(error, ERROR_UNAVAILABLE,
		    "process %ld, which keeps it, does not answer: is it stopped?", (long)id->pid);
	default:
		return sandbox_error(error, "cannot reach this hold", OUTSIDE);
	}
}

/* Connect to the keeper of the hold whose ID is TEXT (and ID, parsed).  While the keeper has no
 * room for one more call, try again, for ten seconds.  Returns 0, or -1 with ERROR filled:
 * ERROR_LOST, the hold has ended. */
static int connect_to_keeper(const char *text, const struct hold_id *id, struct hold_peer *peer,
    struct error *error)
{
	const struct deadline end = deadline_after(10 * SECOND);

	while (hold_id_connect(text, peer) != 0)
		if (errno != EAGAIN || deadline_left(&end) == 0 ||
		    poll_until(NULL, 0, deadline_after(SECOND / 20)) < 0)
			return cannot_connect(id, error);
	if (peer->user != geteuid() && geteuid() != 0)
		error_plain(error, ERROR_PERMISSION, "this hold belongs to user %lu",
		    (unsigned long)peer->user);
	else if (!hold_peer_is(peer, id))
		error_plain(error, ERROR_PERMISSION,
		    "another process answers for it, or one of another PID namespace");
	else
		return 0;
	close(peer->connection);
	return -1;
}

/* Write the name of REQUEST's first lock into NAME, as hold_lock_name() does.  If the lock's
 * directory has been removed, write the name as it was given: the keeper then compares the last
 * part.  Returns 0, or -1 with ERROR filled. */
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

int keeper_call(const struct request *request, const char *text, const char *word,
    struct keeper_call *call, struct error *error)
{
	char name[PATH_MAX + 1], message[KEEPER_MESSAGE];
	struct hold_peer peer;

	if (!hold_id_parse(text, &call->id))
		return error_plain(error, ERROR_USAGE,
		    "this is not the ID of a hold: --detach prints it, and --who shows it");
	if (name_lock(request, name, error) != 0 ||
	    connect_to_keeper(text, &call->id, &peer, error) != 0)
		return -1;
	*call = (struct keeper_call){peer.connection, call->id, peer.user != geteuid()};
	snprintf(message, sizeof message, "%s %s", word, name);
	/* if the keeper has just ended, its answer may be there nevertheless */
	if (keeper_say(call->connection, message) == 0 || errno == EPIPE || errno == ECONNRESET)
		return 0;
	sandbox_error(error, "cannot reach this hold", OUTSIDE);
	close(call->connection);
	return -1;
}

/* How long to wait before checking whether the keeper is stopped, and before it counts as mute.  A
 * keeper says every ten seconds that it is alive, but on a busy machine that may come late. */
#define PATIENCE (10 * SECOND)
#define MUTE (FAULT_POINT("detach.mute") ? SECOND : 60 * SECOND)

int keeper_await(const struct keeper_call *call, struct deadline until, struct error *error)
{
	const struct deadline mute = deadline_earlier(until, deadline_after(MUTE));
	struct pollfd answer = {call->connection, POLLIN, 0};
	struct deadline look;
	int ready;

	do {
		look = deadline_after(PATIENCE);
		ready = poll_until(&answer, 1, deadline_earlier(mute, look));
		if (ready != 0)
			return ready > 0
			           ? 0
			           : error_set(error, ERROR_SYSTEM, "cannot wait for an answer");
		if (process_stopped(call->id.pid))
			return error_plain(error, ERROR_UNAVAILABLE,
			    "process %ld, which keeps it, is stopped: to get an answer, continue "
			    "it (kill -CONT %ld)",
			    (long)call->id.pid, (long)call->id.pid);
	} while (deadline_left(&mute) > 0);
	return error_plain(error, ERROR_UNAVAILABLE, "process %ld, which keeps it, does not answer",
	    (long)call->id.pid);
}

int keeper_answer(char *answer, char **text, struct error *error)
{
	const long status = strtol(answer, text, 10);

	*text += strspn(*text, " ");
	switch (status) {
	case EXIT_SUCCESS:
		return EXIT_SUCCESS;
	case EXIT_LOST:
		error_plain(error, ERROR_LOST, "this hold has ended: %s", *text);
		return EXIT_LOST;
	case EXIT_USAGE:
	case EXIT_NOTLOCKABLE:
	case EXIT_NOTOPEN:
	case EXIT_UNAVAILABLE:
	case EXIT_SYSTEM:
	case EXIT_CANTCREATE:
	case EXIT_NOTPERMITTED:
		error_plain(error, (enum kind)status, "%s", *text);
		return (int)status;
	default:
		error_plain(error, ERROR_UNAVAILABLE, "its keeper answers %ld: %s", status, *text);
		return EXIT_UNAVAILABLE;
	}
}

/* ---- --release ---- */

/* Wait for the keeper's answer to RELEASE.  Until it comes, the keeper keeps sending ENDING, which
 * shows that it is alive.  If the keeper is another user's, wait for a minute at most: it may lie.
 * Returns 0, or -1 with ERROR filled. */
static int hear_answer(const struct keeper_call *call, char message[KEEPER_MESSAGE + 1],
    struct error *error)
{
	const struct deadline until = call->foreign ? deadline_after(MUTE) : deadline_never();

	do {
		if (keeper_await(call, until, error) != 0)
			return -1;
		if (keeper_hear(call->connection, message, 0) <= 0)
			return error_plain(error, ERROR_LOST,
			    "the process that held it has been killed");
	} while (text_after_word(message, KEEPER_ENDING) != NULL);
	return 0;
}

/* Returns 0, or -1 with ERROR filled. */
static int client_release(const struct request *request, struct error *error)
{
	char message[KEEPER_MESSAGE + 1], *text;
	struct keeper_call call;
	int status;

	if (keeper_call(request, request->release, KEEPER_RELEASE, &call, error) != 0)
		return -1;
	status = hear_answer(&call, message, error);
	close(call.connection);
	if (status != 0 || keeper_answer(message, &text, error) != 0)
		return -1;
	if (*text != '\0' && !request->quiet)
		complain("%s: --release=%s: %s", request->label, request->release, text);
	return 0;
}

int release_hold(const struct request *request)
{
	struct error error;

	if (client_release(request, &error) == 0)
		return EXIT_SUCCESS;
	complain("%s: --release=%s: %s", request->label, request->release, error.text);
	return exit_status_of(error.kind);
}

/* ---- is the hold our own? ---- */

enum { MOST_ANCESTORS = 64 };

/* How long the search for an own hold may delay a wait.  Only this user's
 * keepers that may hold for us or an ancestor are asked.  On a busy machine, an answer may come
 * late; without it, this process could wait for itself. */
#define LONGEST_SEARCH (10 * SECOND)

struct own_search {
	unsigned ours[MOST_ANCESTORS]; /* hold_id_digits() of this process and its ancestors */
	size_t count;
	const char *question;
	struct own_hold *hold;
	struct deadline deadline;
};

static bool is_ancestor(pid_t owner)
{
	return owner > 1 && (owner == getpid() || process_descends(getpid(), owner, 0, 0));
}

/* May the hold ID belong to this process or to an ancestor?  If not, do not wake its keeper. */
static bool may_be_ours(struct own_search *search, const struct hold_id *id)
{
	struct procfs_stat seen;
	pid_t pid = search->count == 0 ? getpid() : 0;
	bool found = false;

	for (; pid > 1 && search->count < MOST_ANCESTORS && process_stat(pid, &seen);
	     pid = seen.parent)
		search->ours[search->count++] = hold_id_digits(pid);
	for (size_t i = 0; i < search->count && !found; i++)
		found = search->ours[i] == id->owner;
	return found || search->count == MOST_ANCESTORS;
}

/* Send the question to PEER, and receive its ANSWER.  Returns false if none comes in time. */
static bool ask_keeper(const struct own_search *search, const struct hold_peer *peer,
    char answer[KEEPER_MESSAGE + 1])
{
	struct pollfd event = {peer->connection, POLLIN, 0};

	return keeper_say(peer->connection, search->question) == 0 &&
	       poll_until(&event, 1, search->deadline) > 0 &&
	       keeper_hear(peer->connection, answer, MSG_DONTWAIT) > 0;
}

/* For listeners_each(), with the socket NAME of USER: ask the keeper that listens there whether it
 * keeps a hold of ours.  Any user may listen under such a name, and never answer: so ask only a
 * process that is this user's and that the ID names.  Connecting never waits.  Returns false to end
 * the search. */
static bool ask_for_owner(const char *name, uid_t user, void *context)
{
	struct own_search *search = context;
	struct hold_id id;
	const char *text = hold_id_of_socket(name, &id);
	char answer[KEEPER_MESSAGE + 1] = "";
	struct hold_peer peer;
	long owner;

	if (deadline_left(&search->deadline) == 0)
		return false;
	if (text == NULL || (user != (uid_t)-1 && user != geteuid()) || !may_be_ours(search, &id) ||
	    process_stopped_or_traced(id.pid) || hold_id_connect(text, &peer) != 0)
		return true;
	if (peer.user == geteuid() && hold_peer_is(&peer, &id))
		ask_keeper(search, &peer, answer);
	close(peer.connection);
	if (sscanf(answer, "0 %ld", &owner) != 1 || !is_ancestor((pid_t)owner))
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
	    .deadline = deadline_after(LONGEST_SEARCH),
	};
	struct error ignored;

	hold->owner = 0;
	/* with slots, a wait can end: another holder's slot may come free */
	if (lock->spec->name == NULL || lock->spec->slots > 0 || !process_numbers_ours() ||
	    hold_lock_name(lock->spec->name, name, &ignored) != 0)
		return false;
	snprintf(question, sizeof question, KEEPER_OWNER " %s %s", lock->spec->method->name, name);
	listeners_each(ask_for_owner, &search);
	return hold->owner != 0;
}
