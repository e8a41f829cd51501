/* SPDX-License-Identifier: MIT */
/* torture.h - what the parts of the torture share. */
#ifndef SEMLOCK_TORTURE_H
#define SEMLOCK_TORTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MOST = 64, EVENTS = 1 << 14 };

/* The log: its last events are printed when two overlap. */
struct event {
	atomic_llong ns; /* the monotonic clock */
	atomic_int pid, slot, what;
};

/* Shared by all processes. */
struct board {
	atomic_long inside, done, shared; /* entries; full rounds alone; and together with others */
	atomic_long overlaps, lost, failures;
	atomic_long breakers, winners, ended; /* of breakers.c */
	atomic_long kills, stops, terms, deleted;
	atomic_long halts;          /* waiters left stopped, mostly while a replacer was inside */
	atomic_long refusals;       /* of --replace, because such a waiter had the lock: few */
	atomic_long bursts, blocks; /* of the hostile process */
	atomic_long broken;         /* locks of dead processes, by a form that breaks them: none */
	atomic_int command[MOST];   /* the process of each contender that is inside */
	atomic_int semlock[MOST];   /* its semlock, if the contender is a shell or a script */
	/* time of the last entry, and the longest time without one */
	atomic_llong last_ns, longest_ns;
	atomic_uint events;
	atomic_uint overlap; /* the event of the first overlap */
	atomic_int met;      /* the process that the first overlap met */
	struct event event[EVENTS];
};

extern struct board *board;
extern const char *self; /* this program */

/* board.c */
void open_board(int flags); /* O_CREAT | O_TRUNC: a new one, in the current directory */
int64_t now_ns(void);
void pause_us(long us);
unsigned pick(unsigned n); /* at random, from 0 to N - 1 */
void seed(unsigned long long number);
void fatal(const char *what) __attribute__((noreturn)); /* prints errno; exits 2 */
unsigned note(int what, pid_t pid, int slot); /* WHAT: a letter, for the log; returns its number */
void show_events(unsigned end);               /* those before number END */

/* process.c: of any process, not only children */
bool dying(pid_t pid); /* gone, a zombie, exiting, or with a SIGKILL on its way */
bool is_stopped(pid_t pid);
bool signal_command(pid_t pid, int signo); /* if PID still is this program */

/* inside.c: what the lock protects.  MODE: x alone, s shared, j in slot SEMLOCK_SLOT, d alone
 * and then the lock file is deleted; and t after it: this process dies with its semlock. */
int go_inside(int slot, const char *mode);

/* forms.c: the ways to ask for the lock. */
struct form;
/* Those of METHOD that WANTED (names with commas; NULL: all but peers) names; how many. */
int forms_choose(const char *method, const char *wanted);
/* At random; for SLOT 0 always semlock: the other programs alone take over no dead holder's
 * lock. */
const struct form *form_pick(int slot);
void form_exec(const struct form *form, const char *method, const char *semlock, int slot)
    __attribute__((noreturn));
const char *form_name(const struct form *form);
bool form_may_be_killed(const struct form *form); /* its lock would be taken over */
/* STATUS: as of waitpid.  OTHER: the contender may not signal all the others. */
bool form_expects(const struct form *form, int status, bool other);
bool form_replaces(const struct form *form);
/* one breaks the locks of dead processes, without a second check: no contender is killed */
bool forms_break(void);
int open_and_exec(char **argv); /* LOCK as descriptor 20, for ARGV */
int lock_by_descriptor(int slot, const char *mode, char **argv);
int by_hand(const char *how, int slot); /* a locker without any tool: mkdir, excl, ... */

/* held.c: adds "held" or "FREE" to the file ran: does any process hold the lock of METHOD on the
 * name lock, as far as this process can see? */
int say_if_held(const char *method);

/* users.c */
/* as root, with another user that can reach everything: two users */
void users_begin(const char *semlock);
bool user_is_other(int slot);
void user_become(int slot);      /* in the process of that contender */
pid_t hostile_start(void);       /* takes tickets of the queue */
void hostile_end(pid_t hostile); /* 0: there is none */

/* verdict.c */
long rounds(void); /* that are done */
bool left_over(const char *method);
/* Print the figures; returns 0, or 1 when something was wrong.  TOOK: ns. */
int verdict(const char *method, int count, int64_t took, bool stuck, bool litter);

/* contend.c: returns 0, or 1 if something was wrong. */
int contend(const char *method, const char *semlock, long wanted, long kills, int count);

/* breakers.c */
int breakers(const char *method, const char *semlock, int rounds, int count);
void make_stale(const char *method, const char *semlock);

#endif
