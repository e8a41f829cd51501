/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "naive.h"
#include "torture.h"

#define MS INT64_C(1000000)

struct contender {
	pid_t pid;
	const struct form *form; /* NULL: a naive locker */
};

struct contest {
	const char *method, *semlock;
	struct contender contenders[MOST];
	int count;
	long every, next; /* entries from one kill to the next */
	int64_t began, limit, woken;
	int64_t halted[MOST]; /* until when the contender is to stay stopped */
	pid_t hostile;
	bool stuck;
};

static void start(struct contest *contest, int slot)
{
	struct contender *one = &contest->contenders[slot];
	char number[16];
	pid_t parent = getpid();

	one->form = naive_is(contest->method) ? NULL : form_pick(slot);
	one->pid = fork();
	if (one->pid < 0)
		fatal("fork");
	if (one->pid > 0)
		return;
	if (freopen("messages", "a", stderr) == NULL)
		_exit(2);
	if (one->form != NULL)
		user_become(slot);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(2);
	snprintf(number, sizeof number, "%d", slot);
	if (one->form == NULL)
		_exit(naive_run(contest->method, "lock", self, number));
	form_exec(one->form, contest->method, contest->semlock, slot);
}

/* ---- signals to the contenders ---- */

static bool immortal(const struct contender *one)
{
	return one->form != NULL && !form_may_be_killed(one->form);
}

/* Sends SIGNO to the semlock, to the command, or to both. */
static void strike(const struct contender *one, int slot, int signo, int what)
{
	int command = atomic_load(&board->command[slot]),
	    semlock = atomic_load(&board->semlock[slot]);
	unsigned whom = pick(3);

	if (whom != 1 && !immortal(one)) {
		note(what, one->pid, slot);
		kill(one->pid, signo);
	}
	if (whom != 0 && command > 0 && (command != one->pid || !immortal(one))) {
		note(what, command, slot);
		signal_command(command, signo);
	}
	if (whom == 2 && semlock > 0 && getpgid(semlock) == getpgrp())
		kill(semlock, signo);
}

/* A command that was stopped stops its semlock, too: continue both. */
static void wake(struct contest *contest, int64_t now)
{
	for (int slot = 0; slot < contest->count; slot++)
		if (contest->halted[slot] <= now && is_stopped(contest->contenders[slot].pid))
			kill(contest->contenders[slot].pid, SIGCONT);
}

static void stop(struct contest *contest, int slot)
{
	const struct contender *one = &contest->contenders[slot];
	int command = atomic_load(&board->command[slot]);
	bool whole = pick(2) == 0 && !immortal(one);

	note('S', whole ? one->pid : command, slot);
	if (whole)
		kill(one->pid, SIGSTOP);
	else
		signal_command(command, SIGSTOP);
	pause_us((long)pick(8000));
	signal_command(command, SIGCONT);
	kill(one->pid, SIGCONT);
	atomic_fetch_add(&board->stops, 1);
}

static bool replacer_is_in(const struct contest *contest)
{
	for (int slot = 0; slot < contest->count; slot++)
		if (form_replaces(contest->contenders[slot].form) &&
		    atomic_load(&board->command[slot]) != 0)
			return true;
	return false;
}

/* Stops a waiter, mostly for less time than the other waiters grant it.  (It may become the holder
 * just now.) */
static void halt(struct contest *contest)
{
	int slot = (int)pick((unsigned)contest->count);
	const struct contender *one = &contest->contenders[slot];

	if (one->form == NULL || immortal(one) || atomic_load(&board->command[slot]) != 0 ||
	    atomic_load(&board->inside) < atomic_load(&board->halts) * 20 ||
	    pick(replacer_is_in(contest) ? 8 : 1000) != 0)
		return;
	contest->halted[slot] = now_ns() + (pick(64) == 0 ? 1500 : 1 + pick(50)) * MS;
	note('P', one->pid, slot);
	kill(one->pid, SIGSTOP);
	atomic_fetch_add(&board->halts, 1);
}

static void do_harm(struct contest *contest)
{
	int slot = (int)pick((unsigned)contest->count);
	const struct contender *one = &contest->contenders[slot];

	if (atomic_load(&board->inside) < contest->next)
		return;
	contest->next += contest->every;
	pause_us((long)pick(800));
	if (forms_break()) {
		if (one->form != NULL)
			stop(contest, slot);
		return;
	}
	strike(one, slot, SIGKILL, 'K');
	atomic_fetch_add(&board->kills, 1);
	if (one->form == NULL)
		return;
	slot = (int)pick((unsigned)contest->count);
	if (pick(4) == 0) {
		strike(&contest->contenders[slot], slot, SIGTERM, 'T');
		atomic_fetch_add(&board->terms, 1);
	} else if (pick(4) == 0) {
		stop(contest, slot);
	}
}

/* ---- the contest ---- */

static void complain_of(const struct contender *one, int status)
{
	if (atomic_fetch_add(&board->failures, 1) < 5)
		fprintf(stderr, "contender %s ended with %s %d\n",
		    one->form == NULL ? "naive" : form_name(one->form),
		    WIFEXITED(status) ? "status" : "signal",
		    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* 69: a waiter that is stopped or delayed while it takes a dead holder's lock over counts as a
 * holder after a second; but nothing in the lock proves that it is one, so --replace does not
 * signal it. */
static bool is_refused(const struct contender *one, int status)
{
	if (!form_replaces(one->form) || !WIFEXITED(status) || WEXITSTATUS(status) != 69)
		return false;
	atomic_fetch_add(&board->refusals, 1);
	return true;
}

static bool expected(const struct contender *one, int slot, int status)
{
	if (one->form != NULL && is_refused(one, status))
		return true;
	if (one->form != NULL)
		return form_expects(one->form, status, user_is_other(slot));
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL;
	return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 137;
}

static void one_ended(struct contest *contest, pid_t pid, int status)
{
	for (int slot = 0; slot < contest->count; slot++) {
		struct contender *one = &contest->contenders[slot];

		if (one->pid != pid)
			continue;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 76)
			atomic_fetch_add(&board->lost, 1);
		if (!expected(one, slot, status))
			complain_of(one, status);
		contest->halted[slot] = 0;
		start(contest, slot);
	}
}

/* Time without progress until STUCK: long for a busy machine, short for the naive lockers, which do
 * get stuck. */
static int64_t stuck_after(const struct contest *contest)
{
	const char *seconds = getenv("TORTURE_STUCK");

	if (seconds != NULL)
		return atol(seconds) * 1000 * MS;
	return (naive_is(contest->method) ? 10000 : 60000) * MS;
}

static void wait_for_one(struct contest *contest)
{
	int64_t now = now_ns();
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid > 0) {
		one_ended(contest, pid, status);
		return;
	}
	contest->stuck = now - atomic_load(&board->last_ns) > stuck_after(contest);
	if (now - contest->woken > 20 * MS) {
		contest->woken = now;
		wake(contest, now);
	}
	pause_us((long)pick(300));
}

static void run_down(struct contest *contest)
{
	int64_t end = now_ns() + stuck_after(contest);
	int left = contest->count, status;

	for (int slot = 0; slot < contest->count && contest->stuck; slot++)
		kill(contest->contenders[slot].pid, SIGKILL);
	while (left > 0) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == contest->contenders[0].pid && left > 1 && !contest->stuck)
			start(contest, 0); /* peers may still wait for a dead holder's lock */
		else
			left -= pid > 0;
		if (pid > 0)
			continue;
		if (pid < 0)
			return;
		wake(contest, INT64_MAX);
		pause_us(1000);
		if (now_ns() > end && !contest->stuck) {
			contest->stuck = true;
			for (int slot = 0; slot < contest->count; slot++)
				kill(contest->contenders[slot].pid, SIGKILL);
		}
	}
}

/* ---- the end ---- */

/* The last acquisitions, without kills, take over the locks of killed contenders, and remove their
 * files. */
static void calm_down(struct contest *contest)
{
	int status;

	forms_choose(contest->method, "command");
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			make_stale(contest->method, contest->semlock);
		start(contest, 0);
		waitpid(contest->contenders[0].pid, &status, 0);
	}
}

static bool over(const struct contest *contest, long wanted)
{
	return contest->stuck || rounds() >= wanted || atomic_load(&board->overlaps) > 0 ||
	       (contest->limit > 0 && now_ns() - contest->began > contest->limit);
}

int contend(const char *method, const char *semlock, long wanted, long kills, int count)
{
	struct contest contest = {.method = method, .semlock = semlock, .count = count};
	const char *seconds = getenv("TORTURE_SECONDS");
	bool litter = false;

	if (!naive_is(method) && forms_choose(method, getenv("TORTURE_FORMS")) == 0)
		return 2;
	contest.every = contest.next = kills > 0 && wanted > kills ? wanted / kills : 0;
	contest.limit = seconds == NULL ? 0 : atol(seconds) * 1000 * MS;
	contest.began = now_ns();
	atomic_store(&board->last_ns, contest.began);
	for (int slot = 0; slot < count; slot++)
		start(&contest, slot);
	if (!naive_is(method))
		contest.hostile = hostile_start();
	while (!over(&contest, wanted)) {
		wait_for_one(&contest);
		if (contest.every > 0) {
			do_harm(&contest);
			halt(&contest);
		}
	}
	hostile_end(contest.hostile);
	run_down(&contest);
	if (!contest.stuck && !naive_is(method) && atomic_load(&board->overlaps) == 0) {
		calm_down(&contest);
		litter = left_over(method);
	}
	return verdict(method, count, now_ns() - contest.began, contest.stuck, litter);
}
