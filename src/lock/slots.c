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

#include "sys/wakeup.h"
#include "lock/held_mode.h"
#include "lock/slots.h"

/* What the threads in front of the slots share. */
struct slot_wait {
	struct lock *lock;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum outcome outcome; /* BUSY until something has been caught */
	bool closed;          /* decided: whatever is caught from now on is given back */
	struct error error;
	atomic_bool over;
	atomic_uint running;
};

struct slot_waiter {
	struct slot_wait *slot_wait;
	unsigned slot;
	pthread_t thread;
};

static enum outcome try_from(struct lock *lock, unsigned first, struct error *error)
{
	enum outcome outcome = BUSY;

	for (unsigned slot = first; slot < lock->slots && outcome == BUSY; slot++) {
		outcome = lock->method->take_slot(lock, slot, TRY, error);
		if (outcome == TAKEN)
			lock->slot = (int)slot;
	}
	return outcome;
}

/* A caller's descriptor that has a slot already is to have no second one. */
enum outcome slots_try(struct lock *lock, struct error *error)
{
	if (lock->name == NULL && (lock->slot = fdinfo_slot(lock)) >= 0)
		return TAKEN;
	return try_from(lock, 0, error);
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
static void report_catch(struct slot_waiter *slot_waiter, enum outcome outcome, const struct error *error)
{
	struct slot_wait *slot_wait = slot_waiter->slot_wait;

	pthread_mutex_lock(&slot_wait->mutex);
	if (slot_wait->closed) {
		if (outcome == TAKEN)
			slot_wait->lock->method->drop_slot(slot_wait->lock, slot_waiter->slot);
	} else {
		slot_wait->closed = true;
		slot_wait->outcome = outcome;
		slot_wait->error = *error;
		if (outcome == TAKEN)
			slot_wait->lock->slot = (int)slot_waiter->slot;
	}
	pthread_cond_signal(&slot_wait->changed);
	pthread_mutex_unlock(&slot_wait->mutex);
}

static void *stand_in_front(void *argument)
{
	struct slot_waiter *slot_waiter = argument;
	struct slot_wait *slot_wait = slot_waiter->slot_wait;
	enum outcome outcome = BUSY;
	struct error error = {0};

	while (outcome == BUSY && !atomic_load(&slot_wait->over))
		outcome = slot_wait->lock->method->take_slot(slot_wait->lock, slot_waiter->slot, SLEEP, &error);
	if (outcome != BUSY)
		report_catch(slot_waiter, outcome, &error);
	atomic_fetch_sub(&slot_wait->running, 1);
	return NULL;
}

static struct timespec soon(const struct deadline *deadline, int64_t most)
{
	int64_t left = deadline_left(deadline);
	int64_t at = clock_now() + (left < most ? left : most);

	return (struct timespec){(time_t)(at / SECOND), (long)(at % SECOND)};
}

/* Returns how many slots have got a thread: from 0 on, and usually all. */
static unsigned send_out(struct slot_wait *slot_wait, struct slot_waiter *slot_waiters)
{
	unsigned sent = 0;
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)256 * 1024);
	for (; sent < slot_wait->lock->slots; sent++) {
		slot_waiters[sent] = (struct slot_waiter){.slot_wait = slot_wait, .slot = sent};
		atomic_fetch_add(&slot_wait->running, 1);
		if (pthread_create(&slot_waiters[sent].thread, &small, stand_in_front,
			&slot_waiters[sent]) != 0) {
			atomic_fetch_sub(&slot_wait->running, 1);
			break;
		}
	}
	pthread_attr_destroy(&small);
	return sent;
}

/* A signal may come just before a thread goes to sleep: so it is sent until all are back. */
static void call_back(struct slot_wait *slot_wait, struct slot_waiter *slot_waiters, unsigned sent)
{
	static const struct timespec a_moment = {0, 100000};

	atomic_store(&slot_wait->over, true);
	while (atomic_load(&slot_wait->running) > 0) {
		for (unsigned i = 0; i < sent; i++)
			pthread_kill(slot_waiters[i].thread, alarm_signal());
		nanosleep(&a_moment, NULL);
	}
	for (unsigned i = 0; i < sent; i++)
		pthread_join(slot_waiters[i].thread, NULL);
}

/* Slots from UNWATCHED on have got no thread: those are looked at now and then. */
static void wait_for_catch(struct slot_wait *slot_wait, const struct deadline *deadline, unsigned unwatched)
{
	int64_t most = unwatched == slot_wait->lock->slots ? 3600 * SECOND : 50 * MILLISECOND;
	struct timespec until;

	pthread_mutex_lock(&slot_wait->mutex);
	while (!slot_wait->closed && deadline_left(deadline) > 0) {
		until = soon(deadline, most);
		pthread_cond_timedwait(&slot_wait->changed, &slot_wait->mutex, &until);
		if (slot_wait->closed)
			break;
		slot_wait->outcome = try_from(slot_wait->lock, unwatched, &slot_wait->error);
		slot_wait->closed = slot_wait->outcome != BUSY;
	}
	slot_wait->closed = true;
	pthread_mutex_unlock(&slot_wait->mutex);
}

static void hunt_open(struct slot_wait *slot_wait, struct lock *lock)
{
	pthread_condattr_t monotonic;

	*slot_wait = (struct slot_wait){.lock = lock, .outcome = BUSY};
	pthread_mutex_init(&slot_wait->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&slot_wait->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct error *error)
{
	struct slot_wait slot_wait;
	struct slot_waiter *slot_waiters = calloc(lock->slots, sizeof *slot_waiters);
	unsigned sent;

	if (slot_waiters == NULL) {
		error_set(error, ERROR_SYSTEM, "cannot wait for a slot");
		return FAILED;
	}
	alarm_off();
	alarm_listen();
	hunt_open(&slot_wait, lock);
	sent = send_out(&slot_wait, slot_waiters);
	wait_for_catch(&slot_wait, deadline, sent);
	call_back(&slot_wait, slot_waiters, sent);
	pthread_cond_destroy(&slot_wait.changed);
	pthread_mutex_destroy(&slot_wait.mutex);
	free(slot_waiters);
	*error = slot_wait.error;
	return slot_wait.outcome;
}
