/* crowd - many real processes at one lock, and whether they were served as they should be.
 *
 *   crowd line N KILL SEED LOG CMD...     N waiters, each started when the one before it
 *                                         sleeps; KILL of them are killed; then serve them
 *   crowd loops N ROUNDS HOLD LATE CMD... N loops of ROUNDS commands that hold HOLD us;
 *                                         counts who overtook an earlier one by over LATE us
 *   crowd kills N SECONDS SEED MOST DIR CMD...
 *                                         N loops under random SIGKILL; every visitor claims
 *                                         the place that its SEMLOCK_SLOT (0) names
 *
 * CMD is the lock tool with its options and its LOCK; what it runs is crowd again. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_VISITS = 1 << 16 };

struct visit {
	int64_t arrived, entered;
};

/* Shared by all: who came when, and who is in. */
struct board {
	atomic_int visits, inside, overlaps;
	struct visit visit[MOST_VISITS];
};

static const char *self;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(int64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static void fail(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(70);
}

static struct board *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct board *board;

	if (fd < 0 || ftruncate(fd, (off_t)sizeof *board) != 0)
		fail(path);
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		fail("mmap");
	close(fd);
	return board;
}

/* Run CMD with the words of MORE behind it. */
static pid_t start(char **cmd, char *const more[])
{
	char *argv[64];
	size_t n = 0;
	pid_t pid;

	while (*cmd != NULL && n < 48)
		argv[n++] = *cmd++;
	while (*more != NULL)
		argv[n++] = *more++;
	argv[n] = NULL;
	errno = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (errno != 0)
		fail(argv[0]);
	return pid;
}

/* ---- line ---- */

/* Until the process sleeps in a lock call.  A process that does not within ten seconds
 * is a failure of the test. */
static void until_asleep(pid_t pid)
{
	int64_t give_up = now() + INT64_C(10000000000);
	char path[64], text[64];
	long call;
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
	while (now() < give_up) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
		if (fd >= 0)
			close(fd);
		text[got > 0 ? got : 0] = '\0';
		call = strtol(text, NULL, 10);
		if (got > 0 && strncmp(text, "running", 7) != 0 &&
		    (call == SYS_fcntl || call == SYS_flock))
			return;
		nap(20000);
	}
	errno = ETIMEDOUT;
	fail("a waiter did not go to sleep");
}

static int say_number(char **argv)
{
	int fd = open(argv[0], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	char line[32];
	int n = snprintf(line, sizeof line, "%s\n", argv[1]);

	return write(fd, line, (size_t)n) == n ? 0 : 70;
}

static int count_log(const char *path, int *inversions)
{
	FILE *log = fopen(path, "r");
	int lines = 0, number, last = -1;

	while (log != NULL && fscanf(log, "%d", &number) == 1) {
		*inversions += number < last;
		last = number;
		lines++;
	}
	if (log != NULL)
		fclose(log);
	return lines;
}

static int line(char **argv)
{
	int n = atoi(argv[0]), kills = atoi(argv[1]), killed = 0, inversions = 0, served, status;
	unsigned seed = (unsigned)atoi(argv[2]);
	pid_t *pids = calloc((size_t)n, sizeof *pids);
	char *log = argv[3], number[16];
	int let_go[2];
	pid_t holder;

	if (pids == NULL || pipe(let_go) != 0)
		fail("line");
	fcntl(let_go[1], F_SETFD, FD_CLOEXEC);
	snprintf(number, sizeof number, "%d", let_go[0]);
	holder = start(argv + 4, (char *const[]){(char *)self, (char *)"stand", number, log, NULL});
	while (access(log, F_OK) != 0)
		nap(100000);
	close(let_go[0]);
	for (int i = 0; i < n; i++) {
		snprintf(number, sizeof number, "%d", i);
		pids[i] = start(argv + 4, (char *const[]){(char *)self, (char *)"number", log, number, NULL});
		until_asleep(pids[i]);
	}
	while (killed < kills) {
		int i = (int)((unsigned)rand_r(&seed) % (unsigned)n);

		if (pids[i] > 0 && kill(pids[i], SIGKILL) == 0) {
			waitpid(pids[i], NULL, 0);
			pids[i] = -1;
			killed++;
		}
	}
	close(let_go[1]);
	waitpid(holder, &status, 0);
	for (int i = 0; i < n; i++)
		if (pids[i] > 0)
			waitpid(pids[i], &status, 0);
	served = count_log(log, &inversions);
	printf("waiters %d killed %d served %d inversions %d\n", n, killed, served, inversions);
	return served == n - killed && inversions == 0 ? 0 : 1;
}

/* The holder: makes the log, and stands until the other end of the pipe is closed. */
static int stand(char **argv)
{
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char c;

	if (fd < 0)
		return 70;
	while (read(atoi(argv[0]), &c, 1) > 0)
		;
	return 0;
}

/* ---- loops ---- */

static int visit(char **argv)
{
	struct board *board = board_open(argv[0]);
	int i = atomic_fetch_add(&board->visits, 1);

	if (i < MOST_VISITS)
		board->visit[i] = (struct visit){strtoll(argv[1], NULL, 10), now()};
	if (atomic_fetch_add(&board->inside, 1) != 0)
		atomic_fetch_add(&board->overlaps, 1);
	nap(strtoll(argv[2], NULL, 10) * 1000);
	atomic_fetch_sub(&board->inside, 1);
	return 0;
}

static void one_loop(char **cmd, const char *file, int rounds, const char *hold)
{
	char arrived[32];
	int status;

	for (int i = 0; i < rounds; i++) {
		snprintf(arrived, sizeof arrived, "%lld", (long long)now());
		waitpid(start(cmd, (char *const[]){(char *)self, (char *)"visit", (char *)file, arrived,
				       (char *)hold, NULL}),
		    &status, 0);
	}
}

static int by_entry(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	return (x->entered > y->entered) - (x->entered < y->entered);
}

/* How many came more than LATE ns later than somebody who got in after them. */
static int overtakes(struct board *board, int n, int64_t late)
{
	int64_t earliest = INT64_MAX;
	int count = 0;

	qsort(board->visit, (size_t)n, sizeof *board->visit, by_entry);
	for (int i = n - 1; i >= 0; i--) {
		count += earliest != INT64_MAX && board->visit[i].arrived > earliest + late;
		if (board->visit[i].arrived < earliest)
			earliest = board->visit[i].arrived;
	}
	return count;
}

static int loops(char **argv)
{
	int n = atoi(argv[0]), rounds = atoi(argv[1]), status, visits;
	char file[] = "crowd.XXXXXX";
	struct board *board;

	close(mkstemp(file));
	board = board_open(file);
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			one_loop(argv + 4, file, rounds, argv[2]);
			_exit(0);
		}
	while (wait(&status) > 0)
		;
	visits = atomic_load(&board->visits);
	unlink(file);
	printf("visits %d overlaps %d overtakes %d\n", visits, atomic_load(&board->overlaps),
	    overtakes(board, visits, strtoll(argv[3], NULL, 10) * 1000));
	return atomic_load(&board->overlaps) == 0 && visits == n * rounds ? 0 : 1;
}

/* ---- kills ---- */

/* The kernel closes a dying process's descriptors in no fixed order: one that is on its way
 * out has left, even if its claim is still there. */
static bool is_leaving(pid_t pid)
{
	char path[64], text[512], *end;
	unsigned long flags = 0;
	char state = 'X';
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	end = strrchr(text, ')');
	if (end == NULL || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) < 1)
		return true;
	return state == 'Z' || state == 'X' || (flags & 0x4) != 0; /* PF_EXITING */
}

/* Claim a place: byte SLOT of the witness file. */
static int claim(char **argv)
{
	const char *slot = getenv("SEMLOCK_SLOT");
	int place = slot == NULL ? 0 : atoi(slot);
	int fd = open(argv[0], O_RDWR | O_CREAT, 0600);
	struct board *board = board_open(argv[1]);
	struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
	struct flock other;

	while (fcntl(fd, F_SETLK, &byte) != 0) {
		other = byte;
		if (fcntl(fd, F_GETLK, &other) == 0 && other.l_type != F_UNLCK &&
		    !is_leaving(other.l_pid)) {
			atomic_fetch_add(&board->overlaps, 1);
			return 1;
		}
	}
	if (place >= atoi(argv[2]))
		atomic_fetch_add(&board->overlaps, 1);
	else
		board->visit[place].entered++;
	atomic_fetch_add(&board->visits, 1);
	nap((rand() % 4 + 1) * 300000);
	return 0;
}

static void kill_loop(char **cmd, const char *witness, const char *file, const char *most,
    unsigned seed, int64_t until)
{
	pid_t pid;
	int status;

	while (now() < until) {
		pid = start(cmd, (char *const[]){(char *)self, (char *)"claim", (char *)witness,
				     (char *)file, (char *)most, NULL});
		if (rand_r(&seed) % 4 == 0) {
			nap(rand_r(&seed) % 4000 * 1000);
			kill(pid, SIGKILL);
		}
		waitpid(pid, &status, 0);
	}
}

static int kills(char **argv)
{
	int n = atoi(argv[0]), most = atoi(argv[3]), used = 0, status;
	int64_t until = now() + strtoll(argv[1], NULL, 10) * INT64_C(1000000000);
	char witness[4096], file[4096];
	struct board *board;

	snprintf(witness, sizeof witness, "%s/witness", argv[4]);
	snprintf(file, sizeof file, "%s/board", argv[4]);
	board = board_open(file);
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			kill_loop(argv + 5, witness, file, argv[3], (unsigned)(atoi(argv[2]) + i), until);
			_exit(0);
		}
	while (wait(&status) > 0)
		;
	for (int i = 0; i < most; i++)
		used += board->visit[i].entered > 0;
	printf("visits %d overlaps %d places-used %d\n", atomic_load(&board->visits),
	    atomic_load(&board->overlaps), used);
	return atomic_load(&board->overlaps) == 0 && used == most ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int words;
		int (*run)(char **argv);
	} verbs[] = {
	    {"line", 6, line}, {"stand", 2, stand}, {"number", 2, say_number},
	    {"loops", 6, loops}, {"visit", 3, visit}, {"kills", 7, kills}, {"claim", 3, claim},
	};

	self = argv[0];
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (argc >= 2 && strcmp(argv[1], verbs[i].name) == 0 && argc - 2 >= verbs[i].words)
			return verbs[i].run(argv + 2);
	fprintf(stderr, "crowd: see the comment at the top of its source\n");
	return 64;
}
