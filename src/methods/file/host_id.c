#include <config.h>

#include <ctype.h>
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

/* With one for all threads, a thread could put into a record, or compare, what another is still reading. */
const struct host_id *host_id(void)
{
	static _Thread_local struct host_id it;
	static _Thread_local bool known;
	struct utsname system;
	struct stat namespace;
	char most[24];

	if (known)
		return &it;
	known = true;
	process_file("/proc/sys/kernel/random/boot_id", it.boot, sizeof it.boot);
	process_file("/etc/machine-id", it.machine, sizeof it.machine);
	if (uname(&system) == 0)
		snprintf(it.host, sizeof it.host, "%.*s", HOST_SIZE - 1, system.nodename);
	make_word(it.boot);
	make_word(it.machine);
	make_word(it.host);
	if (stat("/proc/self/ns/pid", &namespace) == 0)
		it.pidns = namespace.st_ino;
	it.pid_max = process_file("/proc/sys/kernel/pid_max", most, sizeof most) > 0 ? atoi(most) : 0;
	it.booted = booted();
	return &it;
}
