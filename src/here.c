/* What this system is called, and what it says of a process. */
#include <config.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "holder.h"

/* The beginning of a small file, as a string; "" when it cannot be read. */
static size_t slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, text, size - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

/* A record is made of words: whatever is no word becomes one. */
static void make_word(char *text)
{
	text[strcspn(text, "\n")] = '\0';
	for (char *p = text; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p))
			*p = '?';
	if (*text == '\0')
		strcpy(text, "-");
}

static int64_t boot_time(void)
{
	struct timespec now, up;

	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return 0;
#ifdef CLOCK_BOOTTIME
	if (clock_gettime(CLOCK_BOOTTIME, &up) == 0)
		return (int64_t)(now.tv_sec - up.tv_sec);
#endif
	return clock_gettime(CLOCK_MONOTONIC, &up) == 0 ? (int64_t)(now.tv_sec - up.tv_sec) : 0;
}

const struct here *here(void)
{
	static struct here it;
	static bool known;
	struct utsname system;
	struct stat namespace;
	char most[24];

	if (known)
		return &it;
	known = true;
	slurp("/proc/sys/kernel/random/boot_id", it.boot, sizeof it.boot);
	slurp("/etc/machine-id", it.machine, sizeof it.machine);
	if (uname(&system) == 0)
		snprintf(it.host, sizeof it.host, "%.*s", HOST_SIZE - 1, system.nodename);
	make_word(it.boot);
	make_word(it.machine);
	make_word(it.host);
	if (stat("/proc/self/ns/pid", &namespace) == 0)
		it.pidns = namespace.st_ino;
	it.pid_max = slurp("/proc/sys/kernel/pid_max", most, sizeof most) > 0 ? atoi(most) : 0;
	it.booted = boot_time();
	return &it;
}

/* The name of the program stands in parentheses and may itself hold any: the last one
 * counts.  State is the 3rd field, start time the 22nd. */
bool stat_read(const char *text, char *state, uint64_t *start)
{
	const char *p = strrchr(text, ')');

	if (p == NULL || p[1] != ' ' || !isalpha((unsigned char)p[2]))
		return false;
	*state = p[2];
	for (int field = 2; field < 22; field++) {
		p = strchr(p + 1, ' ');
		if (p == NULL)
			return false;
	}
	if (!isdigit((unsigned char)p[1]))
		return false;
	*start = strtoull(p + 1, NULL, 10);
	return true;
}

bool process_look(pid_t pid, char *state, uint64_t *start)
{
	char path[40], text[1024];

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	return slurp(path, text, sizeof text) > 0 && stat_read(text, state, start);
}

void record_describe(struct record *record, pid_t pid)
{
	const struct here *system = here();
	char state;

	*record = (struct record){
	    .kind = RECORD_FULL,
	    .pid = pid,
	    .semlock = getpid(),
	    .pidns = system->pidns,
	    .since = (int64_t)time(NULL),
	    .uid = getuid(),
	};
	strcpy(record->boot, system->boot);
	strcpy(record->host, system->host);
	strcpy(record->machine, system->machine);
	if (!process_look(pid, &state, &record->start))
		record->start = 0;
}
