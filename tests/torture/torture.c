/* torture - contenders for one lock that is taken and killed all the time.
 *
 *	torture METHOD SEMLOCK ACQUISITIONS KILLS CONTENDERS [SEED]
 *	torture breakers METHOD SEMLOCK ROUNDS BREAKERS
 *
 * METHOD is one of semlock's, or a naive locker of naive.c, which has to fail.  Works in the
 * current directory.  Prints one line of figures; ends with 0 when nothing was wrong, 1 when
 * something was, 2 when it could not be done.
 *
 * The oracle: whoever is inside has an flock on a witness that nobody waits for, and counts
 * in a file.  A descriptor of somebody who is just being killed is closed in no fixed order,
 * so a witness that is taken is an overlap only if its owner is still alive. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "naive.h"

enum { MOST = 64, STUCK_MS = 10000 };

/* What all processes see. */
struct board {
	atomic_long inside, done, overlaps, lost, kills, failures;
	atomic_int command[MOST]; /* whom a contender has inside now */
	atomic_int occupant;      /* who had the witness last */
	atomic_long last_ms;      /* when somebody was last inside */
	atomic_long winners;
};

static struct board *board;
static const char *self;
static unsigned long long random_state = 1;

static unsigned pick(unsigned n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_us(long us)
{
	struct timespec pause = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&pause, NULL);
}

static void trouble(const char *what)
{
	perror(what);
	exit(2);
}

static struct board *open_board(int flags)
{
	int fd = open("board", flags | O_RDWR | O_CLOEXEC, 0600);
	void *map;

	if (fd < 0 || ftruncate(fd, sizeof(struct board)) != 0)
		trouble("board");
	map = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		trouble("mmap");
	close(fd);
	return map;
}

/* ---- inside: what the lock protects ---- */

static int alive(pid_t pid)
{
	char path[40], text[256], *end;
	FILE *stat;
	size_t got;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	stat = fopen(path, "r");
	if (stat == NULL)
		return 0;
	got = fread(text, 1, sizeof text - 1, stat);
	fclose(stat);
	text[got] = '\0';
	end = strrchr(text, ')');
	if (end == NULL || strchr("ZX", end[2]) != NULL)
		return 0;
	/* PF_EXITING: flags are the 9th field */
	for (int field = 2; field < 9 && end != NULL; field++)
		end = strchr(end + 1, ' ');
	return end == NULL || (strtoul(end, NULL, 10) & 4) == 0;
}

static void take_witness(void)
{
	int witness = open("witness", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	for (int tries = 0; flock(witness, LOCK_EX | LOCK_NB) != 0; tries++) {
		pid_t other = atomic_load(&board->occupant);

		if (other > 0 && other != getpid() && alive(other)) {
			pause_us(2000);
			if (alive(other) && flock(witness, LOCK_EX | LOCK_NB) != 0 &&
			    atomic_load(&board->occupant) == other) {
				fprintf(stderr, "overlap: %d is inside, and so am I, %d\n",
				    (int)other, (int)getpid());
				atomic_fetch_add(&board->overlaps, 1);
				return;
			}
		}
		if (tries > 5000)
			trouble("witness");
		pause_us(200);
	}
}

static int go_inside(int slot)
{
	int counter;
	long value = 0;

	atomic_store(&board->command[slot], (int)getpid());
	atomic_fetch_add(&board->inside, 1);
	take_witness();
	atomic_store(&board->occupant, (int)getpid());
	counter = open("counter", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (pread(counter, &value, sizeof value, 0) < 0)
		trouble("counter");
	if (slot % 2 == 0)
		pause_us(slot * 20);
	value++;
	if (pwrite(counter, &value, sizeof value, 0) != sizeof value)
		trouble("counter");
	atomic_fetch_add(&board->done, 1);
	atomic_store(&board->last_ms, now_ms());
	atomic_store(&board->command[slot], 0);
	return 0;
}

/* ---- the contenders, and who kills them ---- */

static pid_t start(const char *method, const char *semlock, int slot)
{
	char number[16];
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		trouble("fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(2);
	snprintf(number, sizeof number, "%d", slot);
	if (naive_is(method))
		_exit(naive_run(method, "lock", self, number));
	execl(semlock, semlock, "-m", method, "lock", self, "inside", number, (char *)NULL);
	_exit(2);
}

static void kill_one(pid_t pid, int slot)
{
	int command = atomic_load(&board->command[slot]);
	unsigned what = pick(3);

	if (what != 1)
		kill(pid, SIGKILL);
	if (what != 0 && command > 0)
		kill(command, SIGKILL);
	atomic_fetch_add(&board->kills, 1);
}

static int expected(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 137);
}

/* Returns 1 when nobody has been inside for so long that nobody ever will. */
static int contend(const char *method, const char *semlock, long wanted, long kills, int count)
{
	pid_t pids[MOST] = {0};
	long every = kills > 0 ? wanted / kills : 0, next = every;
	int stuck = 0, status;

	atomic_store(&board->last_ms, now_ms());
	for (int slot = 0; slot < count; slot++)
		pids[slot] = start(method, semlock, slot);
	while (atomic_load(&board->done) < wanted && !stuck) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0) {
			stuck = now_ms() - atomic_load(&board->last_ms) > STUCK_MS;
			pause_us(pick(300));
		}
		for (int slot = 0; slot < count && pid > 0; slot++)
			if (pids[slot] == pid) {
				if (!expected(status))
					atomic_fetch_add(&board->failures, 1);
				if (WIFEXITED(status) && WEXITSTATUS(status) == 76)
					atomic_fetch_add(&board->lost, 1);
				pids[slot] = start(method, semlock, slot);
			}
		if (every > 0 && atomic_load(&board->inside) >= next) {
			int slot = (int)pick((unsigned)count);

			next += every;
			pause_us(pick(800));
			kill_one(pids[slot], slot);
		}
	}
	for (int slot = 0; slot < count; slot++)
		if (stuck)
			kill(pids[slot], SIGKILL);
	while (waitpid(-1, &status, 0) > 0)
		;
	return stuck;
}

/* ---- breakers: one dead holder's lock, and many who find it at once ---- */

static int break_in(const char *method, const char *semlock, int slot)
{
	char number[16];

	snprintf(number, sizeof number, "%d", slot);
	if (naive_is(method))
		return naive_run(method, "lock", self, number);
	execl(semlock, semlock, "-n", "-m", method, "lock", self, "win", number, (char *)NULL);
	return 2;
}

static void make_stale(const char *method, const char *semlock)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (naive_is(method))
			_exit(naive_run(method, "lock", self, "die"));
		execl(semlock, semlock, "-m", method, "lock", self, "die", (char *)NULL);
		_exit(2);
	}
	waitpid(pid, NULL, 0);
}

static int breakers(const char *method, const char *semlock, int rounds, int count)
{
	int good = 0;

	for (int round = 0; round < rounds; round++) {
		int gate[2];
		char word;

		make_stale(method, semlock);
		atomic_store(&board->winners, 0);
		if (pipe(gate) != 0)
			trouble("pipe");
		for (int slot = 0; slot < count; slot++)
			if (fork() == 0) {
				close(gate[1]);
				if (read(gate[0], &word, 1) != 0)
					_exit(2);
				close(gate[0]);
				_exit(break_in(method, semlock, slot));
			}
		close(gate[0]);
		close(gate[1]); /* go */
		while (wait(NULL) > 0)
			;
		good += atomic_load(&board->winners) == 1;
	}
	printf("%s: %d rounds of %d breakers, exactly one winner in %d\n", method, rounds, count, good);
	return good == rounds ? 0 : 1;
}

/* A winner stays until all the others have had their chance. */
static int win(void)
{
	atomic_fetch_add(&board->winners, 1);
	pause_us(100000);
	return 0;
}

static int left_over(const char *method)
{
	int code = system("test -z \"$(ls -A | grep -vE '^(board|witness|counter|lock)$')\"");

	if (code == 0 && strcmp(method, "rename") != 0)
		code = access("lock", F_OK) == 0;
	return code != 0;
}

/* The last acquisitions, without kills, take over what the killed have left, and sweep. */
static void calm_down(const char *method, const char *semlock)
{
	int status;

	for (int i = 0; i < 3; i++) {
		if (i == 1)
			make_stale(method, semlock);
		waitpid(start(method, semlock, 0), &status, 0);
	}
}

static int torture(const char *method, const char *semlock, long wanted, long kills, int count)
{
	long began = now_ms(), took;
	int stuck = contend(method, semlock, wanted, kills, count), litter = 0, bad;

	took = now_ms() - began;
	if (!stuck && !naive_is(method)) {
		calm_down(method, semlock);
		litter = left_over(method);
	}
	bad = stuck || litter || atomic_load(&board->overlaps) > 0 || atomic_load(&board->lost) > 0 ||
	      atomic_load(&board->failures) > 0;
	printf("%s: %ld acquisitions by %d, %ld kills, %ld overlaps, %ld lost, %ld failures, "
	       "%s, %s, %ld.%ld s\n",
	    method, atomic_load(&board->done), count, atomic_load(&board->kills),
	    atomic_load(&board->overlaps), atomic_load(&board->lost),
	    atomic_load(&board->failures), stuck ? "STUCK" : "not stuck",
	    litter ? "something LEFT" : "nothing left", took / 1000, took % 1000 / 100);
	return bad;
}

int main(int argc, char **argv)
{
	static char path[4096];

	if (argc >= 3 && strcmp(argv[1], "inside") == 0) {
		board = open_board(0);
		return strcmp(argv[2], "die") == 0 ? (kill(getppid(), SIGKILL), raise(SIGKILL))
						    : go_inside(atoi(argv[2]));
	}
	if (argc >= 2 && strcmp(argv[1], "die") == 0) {
		kill(getppid(), SIGKILL);
		return raise(SIGKILL);
	}
	if (argc >= 2 && strcmp(argv[1], "win") == 0) {
		board = open_board(0);
		return win();
	}
	if (argc < 6) {
		fprintf(stderr, "usage: torture METHOD SEMLOCK ACQUISITIONS KILLS CONTENDERS [SEED]\n"
				"       torture breakers METHOD SEMLOCK ROUNDS BREAKERS\n");
		return 2;
	}
	if (realpath("/proc/self/exe", path) == NULL)
		trouble("/proc/self/exe");
	self = path;
	board = open_board(O_CREAT | O_TRUNC);
	if (strcmp(argv[1], "breakers") == 0)
		return breakers(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]));
	if (argc > 6)
		random_state = strtoull(argv[6], NULL, 10) * 2 + 1;
	if (atoi(argv[5]) < 1 || atoi(argv[5]) > MOST)
		return 2;
	return torture(argv[1], argv[2], atol(argv[3]), atol(argv[4]), atoi(argv[5]));
}
