/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"

sigset_t signals_only(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	return set;
}

const int ending_signals[ENDING_SIGNALS] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

bool is_ending_signal(int signo)
{
	for (int i = 0; i < ENDING_SIGNALS; i++)
		if (ending_signals[i] == signo)
			return true;
	return false;
}

void signals_block_all(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

bool signals_ignored(int signo)
{
	struct sigaction action;

	return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals_wait(const sigset_t *signals, siginfo_t *info, int64_t time)
{
	struct timespec limit = {(time_t)(time / SECOND), (long)(time % SECOND)};

	return sigtimedwait(signals, info, time == INT64_MAX ? NULL : &limit);
}

int signals_free_thread(pthread_t *thread, void *(*main)(void *), void *argument)
{
	pthread_attr_t small;
	pthread_t detached;
	sigset_t before;
	int errnum;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, (size_t)256 * 1024);
	signals_block_all(&before); /* the thread inherits the mask */
	if (thread == NULL)
		pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	errnum = pthread_create(thread == NULL ? &detached : thread, &small, main, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&small);
	return errnum;
}

/* ---- the timer ---- */

#define WAKEUP_SIGNAL SIGIO

static timer_t timer;
static volatile sig_atomic_t ticking;
static volatile sig_atomic_t pause_ms;

/* How long after its first signal the timer sends the second.  If the first one arrives just before
 * the call that it should interrupt, the second one interrupts the call.  If the first one came in
 * time, a shorter pause would interrupt what most callers do next. */
#define FIRST_PAUSE_MS 4
static struct sigaction old_action;
static sigset_t old_mask;

/* wakeup_fire() sets the timer again each time; if it cannot, the interval keeps the timer
 * going. */
static int fire_after(int64_t after)
{
	struct itimerspec when = {
	    .it_value = {(time_t)(after / SECOND), (long)(after % SECOND)},
	    .it_interval = {0, 64 * MILLISECOND},
	};

	return timer_settime(timer, 0, &when, NULL);
}

/* The delivery of the signal is enough to interrupt the call.  The pause doubles: at a constant
 * pace, a process that is traced, or hardly gets the processor, would do nothing but handle
 * signals. */
static void wakeup_fire(int signo)
{
	int saved = errno, ms = pause_ms;

	(void)signo;
	if (ticking)
		fire_after(ms * (int64_t)MILLISECOND);
	if (ms < 64)
		pause_ms = 2 * ms;
	errno = saved;
}

int wakeup_set(int64_t after, struct error *error)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = WAKEUP_SIGNAL};
	/* without SA_RESTART: an interrupted call must fail with EINTR */
	struct sigaction action = {.sa_handler = wakeup_fire};
	sigset_t only_wakeup = signals_only(WAKEUP_SIGNAL);

	if (after == INT64_MAX) {
		wakeup_off();
		return 0;
	}
	if (!ticking) {
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
			return error_set(error, ERROR_SYSTEM, "cannot set a timer");
		sigaction(WAKEUP_SIGNAL, &action, &old_action);
		sigprocmask(SIG_UNBLOCK, &only_wakeup, &old_mask);
	}
	ticking = true;
	pause_ms = FIRST_PAUSE_MS;
	if (fire_after(after > 0 ? after : 1) == 0)
		return 0;
	error_set(error, ERROR_SYSTEM, "cannot set a timer");
	wakeup_off();
	return -1;
}

/* A signal that is still pending is delivered to wakeup_fire() before the disposition is restored:
 * none reaches the command. */
void wakeup_off(void)
{
	if (!ticking)
		return;
	ticking = false;
	timer_delete(timer);
	sigaction(WAKEUP_SIGNAL, &old_action, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

/* ---- the parent ---- */

static pid_t parent;   /* 0: in another PID namespace, so that only a signal reports its end */
static pid_t watching; /* the process that called parent_watch(), not its child; 0: none */
/* If PARENT did not start this process (--die-with-parent=PID), a thread waits for the end of
 * PARENT. */
static struct watched afar = {.pidfd = -1};
static bool from_afar;
static atomic_bool afar_ended;
static pid_t parent_thread; /* thread_of_parent() */
/* The signal that reports the parent's end.  It is SIGCONT, because a stopped process acts on no
 * other signal but KILL.  But SIGCONT may have another reason: anyone may send it, and the kernel
 * also sends it when only the thread that started this process ends, and not the parent.  So check
 * the parent's PID.  Where that cannot be seen, use SIGPWR, which nobody else sends. */
#define PARENT_SIGNAL (parent == 0 ? SIGPWR : SIGCONT)

bool signal_has_mark(const siginfo_t *info, enum signal_mark mark)
{
	return info->si_code == SI_QUEUE && info->si_value.sival_int == (int)mark;
}

bool parent_ended_by(int signo)
{
	if (watching == 0 || watching != getpid() || signo != PARENT_SIGNAL)
		return false;
	if (from_afar)
		return atomic_load(&afar_ended);
	return parent == 0 || getppid() != parent;
}

/* Is this process a child of thread TID of the parent?  false if the kernel does not say. */
static bool is_started_by(const char *tid)
{
	char path[80], text[4096], *rest = text, *word;

	snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", (long)parent, tid);
	if (process_file(path, text, sizeof text) <= 0)
		return false;
	while ((word = strsep(&rest, " ")) != NULL)
		if (strtol(word, NULL, 10) == getpid())
			return true;
	return false;
}

/* The parent's thread that this process is a child of: the one that started it or, if that has
 * ended, the one that took it over.  0: unknown, or the parent has only one thread. */
static pid_t thread_of_parent(void)
{
	char path[40];
	struct dirent *entry;
	struct stat tasks;
	pid_t found = 0;
	DIR *threads;

	snprintf(path, sizeof path, "/proc/%ld/task", (long)parent);
	if (parent <= 0 || stat(path, &tasks) != 0 || tasks.st_nlink <= 3)
		return 0;
	threads = opendir(path);
	while (threads != NULL && found == 0 && (entry = readdir(threads)) != NULL)
		if (entry->d_name[0] != '.' && is_started_by(entry->d_name))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	if (threads != NULL)
		closedir(threads);
	return found;
}

static bool thread_has_ended(pid_t thread)
{
	char path[60];
	struct stat task;

	snprintf(path, sizeof path, "/proc/%ld/task/%ld", (long)parent, (long)thread);
	return stat(path, &task) != 0;
}

/* Look for 20 ms, because the kernel sends the signal shortly before the thread is gone. */
bool parent_lost_thread(const siginfo_t *info)
{
	if (watching == 0 || watching != getpid() || parent_thread == 0 ||
	    info->si_code != SI_USER || info->si_pid != parent)
		return false;
	for (int i = 0; i < 10; i++) {
		if (thread_has_ended(parent_thread)) {
			parent_thread = thread_of_parent();
			return true;
		}
		nap(2 * MILLISECOND);
	}
	return false;
}

static void end_with_parent(int signo)
{
	if (!parent_ended_by(signo))
		return;
	raise(SIGTERM);
	_exit(128 + SIGTERM); /* process 1 of a container survives the SIGTERM */
}

/* Wait for the end of PARENT.  If that fails, act as if it had ended: the command must not outlive
 * it. */
static void *wait_afar(void *unused)
{
	struct pollfd end = {afar.pidfd, POLLIN, 0};

	(void)unused;
	while (!watched_ended(&afar))
		if (poll_until(&end, 1, watched_next_look(&afar)) < 0) {
			complain("--die-with-parent: cannot wait for the end of process %ld: %s",
			    (long)afar.pid, strerror(errno));
			break;
		}
	atomic_store(&afar_ended, true);
	kill(getpid(), SIGCONT);
	return NULL;
}

int parent_watch_from_afar(void)
{
	if (from_afar)
		errno = signals_free_thread(NULL, wait_afar, NULL);
	return from_afar && errno != 0 ? -1 : 0;
}

enum parent_state parent_watch(pid_t pid)
{
	struct sigaction action = {.sa_handler = end_with_parent, .sa_flags = SA_RESTART};
	sigset_t heeded = signals_only(SIGTERM);

	parent = pid > 0 ? pid : getppid();
	watching = getpid();
	from_afar = parent != getppid();
	parent_thread = from_afar ? 0 : thread_of_parent();
	CRASH_POINT("parent.noted");
	sigaddset(&heeded, PARENT_SIGNAL);
	if (signals_ignored(SIGTERM))
		signal(SIGTERM, SIG_DFL);
	sigaction(PARENT_SIGNAL, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &heeded, NULL);
	if (from_afar) {
		return watched_begin(&afar, parent) == 0 ? PARENT_WATCHED : PARENT_ENDED;
	}
	if (prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL) != 0)
		return PARENT_UNSEEN;
	return getppid() == parent ? PARENT_WATCHED : PARENT_ENDED;
}
