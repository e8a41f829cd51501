/* The kernel can put a caller to sleep on one lock, not on whichever of N comes free
 * first.  So the one process that waits for a slot (the others wait for it, in the
 * queue) sleeps in N threads, one in front of each slot.  The first that gets in
 * decides; the others are called back, and what they may have got is given back.
 * Threads rather than children: whatever kills semlock kills them with it. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "alarm.h"
#include "fdinfo.h"
#include "slots.h"

/* What the threads in front of the slots share. */
struct hunt {
	struct lock *lock;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum outcome outcome; /* BUSY until something has been caught */
	bool closed;          /* decided: whatever is caught from now on is given back */
	struct why why;
	atomic_bool over;
	atomic_uint running;
};

struct hunter {
	struct hunt *hunt;
	unsigned slot;
	pthread_t thread;
};

static enum outcome try_from(struct lock *lock, unsigned first, struct why *why)
{
	enum outcome outcome = BUSY;

	for (unsigned slot = first; slot < lock->slots && outcome == BUSY; slot++) {
		outcome = lock->method->take_slot(lock, slot, TRY, why);
		if (outcome == TAKEN)
			lock->slot = (int)slot;
	}
	return outcome;
}

/* A caller's descriptor that has a slot already is to have no second one. */
enum outcome slots_try(struct lock *lock, struct why *why)
{
	if (lock->name == NULL && (lock->slot = fdinfo_slot(lock)) >= 0)
		return TAKEN;
	return try_from(lock, 0, why);
}

/* A caller's descriptor may have had bytes of theirs by another lock, for which others wait. */
void slots_drop(struct lock *lock)
{
	bool all = lock->name == NULL && (lock->method->can & CAN_RANGE) != 0;

	for (unsigned slot = 0; slot < lock->slots; slot++)
		if (all || lock->slot == (int)slot)
			lock->method->drop_slot(lock, slot);
	lock->slot = -1;
}

/* One slot must be ours, not two: what comes in later is given back at once. */
static void report_catch(struct hunter *hunter, enum outcome outcome, const struct why *why)
{
	struct hunt *hunt = hunter->hunt;

	pthread_mutex_lock(&hunt->mutex);
	if (hunt->closed) {
		if (outcome == TAKEN)
			hunt->lock->method->drop_slot(hunt->lock, hunter->slot);
	} else {
		hunt->closed = true;
		hunt->outcome = outcome;
		hunt->why = *why;
		if (outcome == TAKEN)
			hunt->lock->slot = (int)hunter->slot;
	}
	pthread_cond_signal(&hunt->changed);
	pthread_mutex_unlock(&hunt->mutex);
}

static void *stand_in_front(void *argument)
{
	struct hunter *hunter = argument;
	struct hunt *hunt = hunter->hunt;
	enum outcome outcome = BUSY;
	struct why why = {0};

	while (outcome == BUSY && !atomic_load(&hunt->over))
		outcome = hunt->lock->method->take_slot(hunt->lock, hunter->slot, SLEEP, &why);
	if (outcome != BUSY)
		report_catch(hunter, outcome, &why);
	atomic_fetch_sub(&hunt->running, 1);
	return NULL;
}

static struct timespec soon(const struct deadline *deadline, int64_t most)
{
	int64_t left = deadline_left(deadline);
	int64_t at = clock_now() + (left < most ? left : most);

	return (struct timespec){(time_t)(at / SECOND), (long)(at % SECOND)};
}

/* Returns how many slots have got a thread: from 0 on, and usually all. */
static unsigned send_out(struct hunt *hunt, struct hunter *hunters)
{
	unsigned sent = 0;
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)256 * 1024);
	for (; sent < hunt->lock->slots; sent++) {
		hunters[sent] = (struct hunter){.hunt = hunt, .slot = sent};
		atomic_fetch_add(&hunt->running, 1);
		if (pthread_create(&hunters[sent].thread, &small, stand_in_front,
			&hunters[sent]) != 0) {
			atomic_fetch_sub(&hunt->running, 1);
			break;
		}
	}
	pthread_attr_destroy(&small);
	return sent;
}

/* A signal may come just before a thread goes to sleep: so it is sent until all are back. */
static void call_back(struct hunt *hunt, struct hunter *hunters, unsigned sent)
{
	static const struct timespec a_moment = {0, 100000};

	atomic_store(&hunt->over, true);
	while (atomic_load(&hunt->running) > 0) {
		for (unsigned i = 0; i < sent; i++)
			pthread_kill(hunters[i].thread, alarm_signal());
		nanosleep(&a_moment, NULL);
	}
	for (unsigned i = 0; i < sent; i++)
		pthread_join(hunters[i].thread, NULL);
}

/* Slots from UNWATCHED on have got no thread: those are looked at now and then. */
static void wait_for_catch(struct hunt *hunt, const struct deadline *deadline, unsigned unwatched)
{
	int64_t most = unwatched == hunt->lock->slots ? 3600 * SECOND : 50 * MILLISECOND;
	struct timespec until;

	pthread_mutex_lock(&hunt->mutex);
	while (!hunt->closed && deadline_left(deadline) > 0) {
		until = soon(deadline, most);
		pthread_cond_timedwait(&hunt->changed, &hunt->mutex, &until);
		if (hunt->closed)
			break;
		hunt->outcome = try_from(hunt->lock, unwatched, &hunt->why);
		hunt->closed = hunt->outcome != BUSY;
	}
	hunt->closed = true;
	pthread_mutex_unlock(&hunt->mutex);
}

static void hunt_open(struct hunt *hunt, struct lock *lock)
{
	pthread_condattr_t monotonic;

	*hunt = (struct hunt){.lock = lock, .outcome = BUSY};
	pthread_mutex_init(&hunt->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&hunt->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct why *why)
{
	struct hunt hunt;
	struct hunter *hunters = calloc(lock->slots, sizeof *hunters);
	unsigned sent;

	if (hunters == NULL) {
		why_set(why, TROUBLE_SYSTEM, "cannot wait for a slot");
		return FAILED;
	}
	alarm_off();
	alarm_listen();
	hunt_open(&hunt, lock);
	sent = send_out(&hunt, hunters);
	wait_for_catch(&hunt, deadline, sent);
	call_back(&hunt, hunters, sent);
	pthread_cond_destroy(&hunt.changed);
	pthread_mutex_destroy(&hunt.mutex);
	free(hunters);
	*why = hunt.why;
	return hunt.outcome;
}
