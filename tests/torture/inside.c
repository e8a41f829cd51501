/* SPDX-License-Identifier: MIT */
/* The check of mutual exclusion.  A process inside has a record lock on a witness file, which no
 * process waits for, and increments a counter file.  If F_SETLK fails, the kernel names the owner
 * of the witness: unless that process is dying, two are inside. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "torture.h"

enum { SLOTS = 60 };

static struct flock part(short type, off_t start, off_t length)
{
	return (
	    struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static void overlap(pid_t other, int slot)
{
	unsigned number = note('O', getpid(), slot);

	if (atomic_load(&board->overlaps) == 0) {
		atomic_store(&board->met, (int)other);
		atomic_store(&board->overlap, number);
	}
	atomic_fetch_add(&board->overlaps, 1);
}

/* Returns true if this process has the lock on the witness. */
static bool take_part(int witness, struct flock want, int slot)
{
	for (int tries = 0; fcntl(witness, F_SETLK, &want) != 0; tries++) {
		struct flock other = want;

		if (fcntl(witness, F_GETLK, &other) != 0 || tries > 50000)
			fatal("witness");
		if (other.l_type == F_UNLCK)
			continue;
		if (!dying(other.l_pid)) {
			overlap(other.l_pid, slot);
			return false;
		}
		pause_us(100);
	}
	return true;
}

static void take_witness(int witness, char mode, int slot)
{
	const char *number = getenv("SEMLOCK_SLOT");

	if (mode == 'x' || mode == 'd') {
		take_part(witness, part(F_WRLCK, 0, 1 + SLOTS), slot);
		return;
	}
	take_part(witness, part(F_RDLCK, 0, 1), slot);
	if (mode == 'j' && number != NULL)
		take_part(witness, part(F_WRLCK, 1 + atoi(number) % SLOTS, 1), slot);
}

static void note_entry(char mode, int slot)
{
	long long now = now_ns(), before = atomic_exchange(&board->last_ns, now);
	long long longest = atomic_load(&board->longest_ns);

	while (now - before > longest &&
	       !atomic_compare_exchange_weak(&board->longest_ns, &longest, now - before))
		;
	atomic_fetch_add(&board->inside, 1);
	note(mode, getpid(), slot);
}

static void count(int slot)
{
	int counter = open("counter", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	long value = 0;

	if (counter < 0 || pread(counter, &value, sizeof value, 0) < 0)
		fatal("counter");
	if (slot % 2 == 0)
		pause_us(slot * 20);
	value++;
	if (pwrite(counter, &value, sizeof value, 0) != sizeof value)
		fatal("counter");
	atomic_fetch_add(&board->done, 1);
}

int go_inside(int slot, const char *mode)
{
	int witness = open("witness", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct flock nothing = part(F_UNLCK, 0, 0);

	if (witness < 0)
		fatal("witness");
	atomic_store(&board->command[slot], (int)getpid());
	take_witness(witness, mode[0], slot);
	note_entry(mode[0], slot);
	if (mode[0] == 'x' || mode[0] == 'd') {
		count(slot);
	} else {
		pause_us(slot * 20);
		atomic_fetch_add(&board->shared, 1);
	}
	note('l', getpid(), slot);
	fcntl(witness, F_SETLK, &nothing);
	if (mode[0] == 'd' && unlink("lock") == 0) { /* the lock is held until this process ends */
		atomic_fetch_add(&board->deleted, 1);
		note('D', getpid(), slot);
	}
	atomic_store(&board->command[slot], 0);
	return 0;
}
