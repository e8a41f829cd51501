/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "methods/file/host_id.h"
#include "sys/deadline.h"
#include "sys/process.h"

/* Make TEXT one word, because a record is made of words. */
static void make_word(char *text)
{
	text[strcspn(text, "\n")] = '\0';
	for (char *p = text; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p))
			*p = '?';
	if (*text == '\0')
		strcpy(text, "-");
}

/* A clock that was set later, or went on while a virtual machine or a container stood still, makes
 * this boot look younger than it is, and its locks as if they were of an earlier boot.  /dev/null is
 * made at the start: the boot was no later than that. */
static int64_t booted(void)
{
	struct stat made;
	int64_t at = (clock_realtime() - clock_boottime()) / SECOND;

	if (stat("/dev/null", &made) == 0 && S_ISCHR(made.st_mode) && (int64_t)made.st_mtim.tv_sec < at)
		at = (int64_t)made.st_mtim.tv_sec;
	return at;
}

static struct host_id this_system;

static void look_up(void)
{
	struct utsname system;
	struct stat namespace;
	char most[24];

	process_file("/proc/sys/kernel/random/boot_id", this_system.boot, sizeof this_system.boot);
	process_file("/etc/machine-id", this_system.machine, sizeof this_system.machine);
	if (uname(&system) == 0)
		snprintf(this_system.host, sizeof this_system.host, "%.*s", HOST_SIZE - 1, system.nodename);
	make_word(this_system.boot);
	make_word(this_system.machine);
	make_word(this_system.host);
	if (stat("/proc/self/ns/pid", &namespace) == 0)
		this_system.pidns = namespace.st_ino;
	this_system.pid_max = process_file("/proc/sys/kernel/pid_max", most, sizeof most) > 0 ? atoi(most) : 0;
	this_system.booted = booted();
}

/* A thread that asks while another is reading waits for it: half of a name would go into a record.  The
 * structure is not a thread's own, because with that much for each thread musl starts with one more system
 * call. */
const struct host_id *host_id(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_up);
	return &this_system;
}
