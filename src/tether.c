#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif

#include "crash.h"
#include "deadline.h"
#include "descriptor.h"
#include "events.h"
#include "keeper.h"
#include "locksmith.h"
#include "tether.h"

/* From TERM to KILL.  Whoever watches a lease sends us TERM at its last third at the latest, and KILL
 * a second later or when a tenth is left: before that the caller has to be gone. */
#define MERCY (SECOND * 4 / 5)

static void end_with(pid_t parent, int signo)
{
#ifdef HAVE_SYS_PRCTL_H
	prctl(PR_SET_PDEATHSIG, signo);
	if (signo != 0 && getppid() != parent)
		_exit(EXIT_FAILURE);
#else
	(void)parent;
	(void)signo;
#endif
}

/* What the holder ended with is what we end with: it has said why. */
static noreturn void await_word(struct tether *tether, pid_t holder)
{
	int status = 0;
	char word;
	ssize_t got;

	close(tether->report[1]);
	do {
		got = read(tether->report[0], &word, 1);
	} while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(EXIT_SUCCESS);
	while (waitpid(holder, &status, 0) < 0 && errno == EINTR)
		;
	tie_undo(&tether->tie, tether->fd);
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

int tether_begin(struct tether *tether, struct why *why)
{
	pid_t caller_child = getpid(), holder;

	if (tie_make(&tether->tie, tether->fd, why) != 0)
		return -1;
	tether->caller = caller_find();
	if (tether->tie.kind == TIE_NONE && tether->caller.process < 0)
		return why_say(why, TROUBLE_UNAVAILABLE,
		    "nothing can be tied to this descriptor here; use one of a file, open for writing");
	if (descriptor_pipe(tether->report) != 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot make a pipe");
	signal(SIGCHLD, SIG_DFL); /* ignored, the holder's status would be lost */
	holder = fork();
	if (holder < 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot start a process");
	if (holder > 0)
		await_word(tether, holder);
	tether->holder = getpid();
	close(tether->report[0]);
	end_with(caller_child, SIGKILL); /* who waits no longer wants no lock */
	descriptor_close_others((const int[]){tether->tie.fd, tether->caller.process, tether->report[1],
				    events_descriptor()}, 4);
	return 0;
}

/* A process's own lock is dropped as soon as any descriptor of its file is closed. */
static bool must_stay(const struct tether *tether, int fd)
{
	struct stat file;

	if ((tether->locks->method->can & OWNED_BY_PROCESS) == 0 || fstat(fd, &file) != 0)
		return false;
	for (unsigned i = 0; i < tether->nlocks; i++)
		if (file.st_dev == tether->locks[i].device && file.st_ino == tether->locks[i].inode)
			return true;
	return false;
}

static void put_in_place_of(const struct tether *tether, int fd, int standard)
{
	if (!must_stay(tether, standard))
		dup2(fd, standard);
}

/* Descriptors that the caller gave us may be the one that is tied to, or a pipe of which somebody
 * waits for the end.  For what there may be to say, a terminal or a file is opened anew. */
static void detach_output(const struct tether *tether)
{
	struct stat file;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), again = -1;

	if (isatty(STDERR_FILENO) || (fstat(STDERR_FILENO, &file) == 0 && S_ISREG(file.st_mode)))
		again = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
	put_in_place_of(tether, null, STDIN_FILENO);
	put_in_place_of(tether, null, STDOUT_FILENO);
	put_in_place_of(tether, again >= 0 ? again : null, STDERR_FILENO);
	if (again > STDERR_FILENO && !must_stay(tether, again))
		close(again);
	if (null > STDERR_FILENO && !must_stay(tether, null))
		close(null);
}

void tether_detach(const struct tether *tether)
{
	setsid(); /* the keys, and the end of the terminal, are for the caller */
	end_with(0, 0);
	detach_output(tether);
}

static void nap(void)
{
	static const struct timespec a_moment = {0, 10 * MILLISECOND};

	nanosleep(&a_moment, NULL);
}

/* A process that is stopped has to run to obey. */
static void signal_all(const struct tether *tether, int signo)
{
	caller_signal(&tether->caller, signo);
	tie_signal(&tether->tie, signo, tether->caller.pid);
	if (signo == SIGKILL)
		return;
	caller_signal(&tether->caller, SIGCONT);
	tie_signal(&tether->tie, SIGCONT, tether->caller.pid);
}

static bool at_work(const struct tether *tether)
{
	if (tether->tie.kind == TIE_NONE)
		return caller_lives(&tether->caller);
	return tie_is_held(&tether->tie);
}

/* How long after TERM there may be KILL: of a lock on a server, before another may have it. */
static int64_t mercy_for(const struct tether *tether)
{
	const struct locksmith *smith = tether->locks->smith;
	int64_t mercy = MERCY, left;
	struct deadline lease;

	if (smith == NULL)
		return mercy;
	lease = locksmith_lease_end(smith);
	left = deadline_left(&lease) - smith->lease / 20;
	if (mercy > smith->lease / 5)
		mercy = smith->lease / 5;
	return left > mercy ? mercy : left > 0 ? left : 0;
}

/* Who has let go in the meantime has lost nothing. */
static void tell_caller(const struct tether *tether)
{
	struct deadline end;

	if (!at_work(tether))
		return;
	tie_lose(&tether->tie);
	if (tether->on_lost != LOST_UNSAID) {
		if (tether->on_lost != LOST_WARN)
			caller_signal(&tether->caller, tether->on_lost);
		return;
	}
	end = deadline_after(mercy_for(tether));
	signal_all(tether, SIGTERM);
	while (at_work(tether) && deadline_left(&end) > 0)
		nap();
	if (at_work(tether))
		signal_all(tether, SIGKILL);
}

void tether_orphaned(const struct tether *tether)
{
	tell_caller(tether);
}

static sigjmp_buf told;

static void jump_out(int signo)
{
	(void)signo;
	siglongjmp(told, 1);
}

static void let_term(int how)
{
	sigset_t just_it;

	sigemptyset(&just_it);
	sigaddset(&just_it, SIGTERM);
	sigprocmask(how, &just_it, NULL);
}

/* TERM is let in only where it may break off the sleep: whenever it came, it is not missed. */
static bool sleep_until_end(const struct tether *tether)
{
	struct sigaction action = {.sa_handler = jump_out};

	sigaction(SIGTERM, &action, NULL);
	if (sigsetjmp(told, 1) != 0)
		return false;
	let_term(SIG_UNBLOCK);
	tie_await(&tether->tie, tether->caller.process);
	let_term(SIG_BLOCK);
	return true;
}

/* From the word on the caller relies on us: a TERM that comes then must not just end us. */
void tether_watch(void *context)
{
	const struct tether *tether = context;

	tether_detach(tether);
	let_term(SIG_BLOCK);
	if ((tether->locks->method->can & OWNED_BY_PROCESS) != 0)
		end_with(tether->holder, SIGTERM); /* the lock dies with the holder */
	signal(SIGPIPE, SIG_IGN);
	if (write(tether->report[1], "", 1) != 1)
		_exit(EXIT_FAILURE); /* who waited has been killed: nobody relies on it */
	close(tether->report[1]);
	CRASH_POINT("tether.told");
	if (!sleep_until_end(tether))
		tell_caller(tether);
	_exit(EXIT_SUCCESS);
}

const struct lock *tether_in_its_own_way(const struct tether *tether)
{
	struct stat tied, file;

	if ((tether->locks->method->can & CAN_RANGE) == 0 || fstat(tether->fd, &tied) != 0)
		return NULL;
	for (unsigned i = 0; i < tether->nlocks; i++)
		if (stat(tether->locks[i].name, &file) == 0 && tied.st_dev == file.st_dev &&
		    tied.st_ino == file.st_ino)
			return &tether->locks[i];
	return NULL;
}
