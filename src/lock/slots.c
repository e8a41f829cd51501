/* The kernel lets a caller sleep on one lock, not on whichever of N comes free first.  So the head of
 * the queue sleeps in N threads, one for each slot.  The first that gets its slot ends the wait; the
 * others are woken by signals, and unlock what they got.  Threads, not children: they die with us. */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "lock/held_mode.h"
#include "lock/slots.h"
#include "sys/wakeup.h"

/* What the threads share. */
struct slot_wait {
	struct lock *lock;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum outcome outcome; /* BUSY until decided */
	atomic_bool decided;  /* a slot that a thread gets from now on is unlocked; changed under MUTEX */
	struct error error;
	atomic_uint running; /* threads */
};

struct slot_waiter {
	struct slot_wait *wait;
	unsigned slot;
	pthread_t thread;
};

static enum outcome try_slots(struct lock *lock, unsigned first, struct error *error)
{
	enum outcome outcome = BUSY;

	for (unsigned slot = first; slot < lock->spec->slots && outcome == BUSY; slot++) {
		outcome = lock->spec->method->take_slot(lock, slot, TRY, error);
		if (outcome == TAKEN)
			lock->slot = (int)slot;
	}
	return outcome;
}

/* A caller's descriptor gets no second slot. */
enum outcome slots_try(struct lock *lock, struct error *error)
{
	if (lock->spec->name == NULL && (lock->slot = held_read(lock).slot) >= 0)
		return TAKEN;
	return try_slots(lock, 0, error);
}

/* A caller's descriptor may carry the bytes of several slots, from an earlier lock of the range. */
void slots_drop(struct lock *lock)
{
	bool all = lock->spec->name == NULL && (lock->spec->method->can & CAN_RANGE) != 0;

	for (unsigned slot = 0; slot < lock->spec->slots; slot++)
		if (all || lock->slot == (int)slot)
			lock->spec->method->drop_slot(lock, slot);
	lock->slot = -1;
}

static void report_outcome(struct slot_waiter *waiter, enum outcome outcome, const struct error *error)
{
	struct slot_wait *wait = waiter->wait;

	pthread_mutex_lock(&wait->mutex);
	if (!wait->decided) {
		wait->decided = true;
		wait->outcome = outcome;
		wait->error = *error;
		if (outcome == TAKEN)
			wait->lock->slot = (int)waiter->slot;
	} else if (outcome == TAKEN) { /* one slot must be ours, not two */
		wait->lock->spec->method->drop_slot(wait->lock, waiter->slot);
	}
	pthread_cond_signal(&wait->changed);
	pthread_mutex_unlock(&wait->mutex);
}

static void *sleep_on_slot(void *argument)
{
	struct slot_waiter *waiter = argument;
	struct slot_wait *wait = waiter->wait;
	enum outcome outcome = BUSY;
	struct error error = {0};

	while (outcome == BUSY && !wait->decided)
		outcome = wait->lock->spec->method->take_slot(wait->lock, waiter->slot, SLEEP, &error);
	if (outcome != BUSY)
		report_outcome(waiter, outcome, &error);
	atomic_fetch_sub(&wait->running, 1);
	return NULL;
}

/* The time of DEADLINE, or in MOST ns, whichever is earlier. */
static struct timespec wait_until(const struct deadline *deadline, int64_t most)
{
	int64_t left = deadline_left(deadline);
	int64_t at = clock_now() + (left < most ? left : most);

	return (struct timespec){(time_t)(at / SECOND), (long)(at % SECOND)};
}

/* Returns how many slots, from the first, have a thread: all, unless the system refuses more. */
static unsigned start_threads(struct slot_wait *wait, struct slot_waiter *waiters)
{
	pthread_attr_t small;
	unsigned started = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)256 * 1024);
	for (; started < wait->lock->spec->slots; started++) {
		struct slot_waiter *waiter = &waiters[started];

		*waiter = (struct slot_waiter){.wait = wait, .slot = started};
		atomic_fetch_add(&wait->running, 1);
		if (pthread_create(&waiter->thread, &small, sleep_on_slot, waiter) != 0) {
			atomic_fetch_sub(&wait->running, 1);
			break;
		}
	}
	pthread_attr_destroy(&small);
	return started;
}

/* A signal may come just before a thread goes to sleep: repeat it until all threads have ended. Ever less
   often: a thread that is slow to end must not be kept busy with signals that have queued up. */
static void end_threads(struct slot_wait *wait, struct slot_waiter *waiters, unsigned started)
{
	struct timespec pause = {0, 100000};

	while (atomic_load(&wait->running) > 0) {
		for (unsigned i = 0; i < started; i++)
			pthread_kill(waiters[i].thread, WAKEUP_SIGNAL);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 50 * MILLISECOND)
			pause.tv_nsec *= 2;
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(waiters[i].thread, NULL);
}

/* Slots from UNWATCHED on have no thread: try them every 50 ms. */
static void wait_for_threads(struct slot_wait *wait, const struct deadline *deadline, unsigned unwatched)
{
	int64_t most = unwatched == wait->lock->spec->slots ? 3600 * SECOND : 50 * MILLISECOND;
	struct timespec until;

	pthread_mutex_lock(&wait->mutex);
	while (!wait->decided && deadline_left(deadline) > 0) {
		until = wait_until(deadline, most);
		pthread_cond_timedwait(&wait->changed, &wait->mutex, &until);
		if (wait->decided)
			break;
		wait->outcome = try_slots(wait->lock, unwatched, &wait->error);
		wait->decided = wait->outcome != BUSY;
	}
	wait->decided = true;
	pthread_mutex_unlock(&wait->mutex);
}

static void init_wait(struct slot_wait *wait, struct lock *lock)
{
	pthread_condattr_t monotonic;

	*wait = (struct slot_wait){.lock = lock, .outcome = BUSY};
	pthread_mutex_init(&wait->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&wait->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct error *error)
{
	struct slot_waiter *waiters = calloc(lock->spec->slots, sizeof *waiters);
	struct slot_wait wait;
	unsigned started;

	if (waiters == NULL) {
		error_set(error, ERROR_SYSTEM, "cannot wait for a slot");
		return FAILED;
	}
	wakeup_off();
	wakeup_listen();
	init_wait(&wait, lock);
	started = start_threads(&wait, waiters);
	wait_for_threads(&wait, deadline, started);
	end_threads(&wait, waiters, started);
	pthread_cond_destroy(&wait.changed);
	pthread_mutex_destroy(&wait.mutex);
	free(waiters);
	*error = wait.error;
	return wait.outcome;
}
