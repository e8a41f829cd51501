/* SPDX-License-Identifier: MIT */
/* A file's contents:
 *
 *     12345                                        the PID alone: other programs look for it
 *     semlock/1 excl
 *     start=578573 boot=b4c1a2f6-... pidns=4026531836 flock=1 semlock=12344
 *     host=vm machine=3d1219c7... since=1763674980 uid=0
 *
 * and a symbolic link's target: 12345:578573:b4c1a2f6-1f2e:4026531836:12344@vm
 *
 * 12345 is the command, which holds the lock.  12344 is its semlock, which releases the lock when
 * 12345 has ended.  A symbolic link cannot be flocked, so only this PID shows that the release is
 * still to come.  The target has only the beginning of the boot ID: ext4 stores a target of less
 * than 60 bytes in the inode, which saves time. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "sys/deadline.h"
#include "sys/process.h"
#include "methods/file/owner_record.h"

/* No word after the PID is a bare number, so that kill $(cat FILE) signals only the holder. */
#define MAGIC "semlock/1 "

/* ---- this system ---- */

/* Make TEXT one printable word, because blanks and newlines separate a record's words. */
static void make_word(char *text)
{
	text[strcspn(text, "\n")] = '\0';
	for (char *p = text; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p))
			*p = '?';
	if (*text == '\0')
		strcpy(text, "-");
}

/* When this system was booted, in seconds since 1970: the clock, minus the time since the boot.
 * That is too late if the clock was set forward since, or went on while a virtual machine or a
 * container was stopped.  Then locks of this boot would look like those of an earlier one.  So use
 * the mtime of /dev/null if that is earlier: it was created at boot. */
static int64_t booted(void)
{
	struct stat made;
	int64_t at = (clock_realtime() - clock_boottime()) / SECOND;

	if (stat("/dev/null", &made) == 0 && S_ISCHR(made.st_mode) &&
	    (int64_t)made.st_mtim.tv_sec < at)
		at = (int64_t)made.st_mtim.tv_sec;
	return at;
}

static struct host_id this_system;

/* Read the boot ID.  If boot_id is not procfs's own file (systemd-nspawn and others mount another
 * over it), it does not identify this boot: leave the ID unknown. */
static void read_boot(void)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	struct statfs fs;

	if (statfs(path, &fs) == 0 && fs.f_type == 0x9fa0 /* PROC_SUPER_MAGIC */)
		process_file(path, this_system.boot, sizeof this_system.boot);
}

static void look_up(void)
{
	struct utsname system;
	struct stat pid_namespace;
	char most[24];

	read_boot();
	process_file("/etc/machine-id", this_system.machine, sizeof this_system.machine);
	if (uname(&system) == 0)
		snprintf(this_system.host, sizeof this_system.host, "%.*s", HOST_SIZE - 1,
		    system.nodename);
	else
		this_system.nameless = errno;
	make_word(this_system.boot);
	make_word(this_system.machine);
	make_word(this_system.host);
	if (stat("/proc/self/ns/pid", &pid_namespace) == 0)
		this_system.pidns = pid_namespace.st_ino;
	this_system.pid_max =
	    process_file("/proc/sys/kernel/pid_max", most, sizeof most) > 0 ? atoi(most) : 0;
	this_system.booted = booted();
}

/* pthread_once(3) keeps a thread from reading a name while another writes it.  The structure is not
 * thread-local: with so much data for each thread, musl makes one more system call at start. */
const struct host_id *host_id(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_up);
	return &this_system;
}

/* ---- a record is read ---- */

/* Return the number at *TEXT, and move *TEXT past its digits; -1 if there are none, or too many. */
static int64_t parse_number(const char **text)
{
	int64_t value = 0;
	const char *p = *text;

	if (!isdigit((unsigned char)*p))
		return -1;
	for (; isdigit((unsigned char)*p); p++) {
		if (value > INT64_MAX / 10 - 1)
			return -1;
		value = value * 10 + (*p - '0');
	}
	*text = p;
	return value;
}

static bool set_pid(pid_t *into, int64_t pid)
{
	if (pid < 0 || pid > INT32_MAX)
		return false;
	*into = (pid_t)pid;
	return true;
}

/* Copy the LENGTH bytes at TEXT to WORD, of SIZE bytes.  False: they are not one word, or too
 * long. */
static bool set_word(char *word, size_t size, const char *text, size_t length)
{
	if (length == 0 || length >= size)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]))
			return false;
	memcpy(word, text, length);
	word[length] = '\0';
	return true;
}

/* Copy VALUE of the word KEY=VALUE in TEXT to INTO.  False: it is missing, or not what we would
 * have written. */
static bool find_word(const char *text, const char *key, char *into, size_t size)
{
	size_t length = strlen(key);

	for (const char *p = text; (p = strstr(p, key)) != NULL; p += length)
		if (p != text && isspace((unsigned char)p[-1]) && p[length] == '=')
			return set_word(into, size, p + length + 1, strcspn(p + length + 1, " \n"));
	return false;
}

static bool find_number(const char *text, const char *key, uint64_t *value)
{
	char digits[24];
	const char *p = digits;
	int64_t found;

	if (!find_word(text, key, digits, sizeof digits) || (found = parse_number(&p)) < 0 ||
	    *p != '\0')
		return false;
	*value = (uint64_t)found;
	return true;
}

/* Read the rest of a record that semlock wrote.  An incomplete one is RECORD_JUNK: if the machine
 * crashed while it was written, the missing part could be the one that matters. */
static enum record_kind read_full(struct record *record, const char *text)
{
	uint64_t since, uid, flocked, semlock;

	if (record->pid <= 0 || !find_number(text, "start", &record->start) ||
	    !find_word(text, "boot", record->boot, sizeof record->boot) ||
	    !find_number(text, "pidns", &record->pidns) || !find_number(text, "flock", &flocked) ||
	    !find_word(text, "host", record->host, sizeof record->host) ||
	    !find_word(text, "machine", record->machine, sizeof record->machine) ||
	    !find_number(text, "since", &since) || !find_number(text, "uid", &uid) ||
	    !find_number(text, "semlock", &semlock) || text[strlen(text) - 1] != '\n' ||
	    since > INT64_MAX / SECOND || uid > (uid_t)-1)
		return RECORD_JUNK;
	set_pid(&record->semlock, (int64_t)semlock);
	record->flocked = flocked == 1;
	record->since = (int64_t)since;
	record->uid = (uid_t)uid;
	return RECORD_FULL;
}

/* Programs that lock a serial line write their name and user after the PID:
 * "     4242 minicom root\n".  Is TEXT one such line, and nothing else?  P is what follows the PID
 * and blanks.  Any other file must not be taken for a dead process's lock. */
static bool is_line_of_words(const char *text, const char *p)
{
	enum { LONGEST = 80 };
	const size_t length = strcspn(p, "\n");

	if (strcmp(p + length, "\n") != 0 || p + length - text > LONGEST ||
	    (p[-1] != ' ' && p[-1] != '\t'))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)p[i]) && strchr(" \t._-", p[i]) == NULL)
			return false;
	return isalpha((unsigned char)*p) != 0;
}

/* Accepts what other programs write: HDB UUCP and X ("%10d\n"), leading zeros, no newline (shadow),
 * and GnuPG, whose second line is the host.  A second line that means something else is taken for
 * another host's name, and the verdict is UNKNOWN. */
static enum record_kind read_decimal(struct record *record, const char *text)
{
	const char *p = text + strspn(text, " \t"), *second, *end;

	if (!set_pid(&record->pid, parse_number(&p)))
		return RECORD_JUNK;
	p += strspn(p, " \t\r");
	if (*p == '\0')
		return RECORD_PID;
	if (*p != '\n')
		return is_line_of_words(text, p) ? RECORD_PID : RECORD_JUNK;
	second = p + 1;
	if (strncmp(second, MAGIC, strlen(MAGIC)) == 0)
		return read_full(record, second);
	end = second + strcspn(second, "\r\n");
	if (end > second && !set_word(record->host, HOST_SIZE, second, (size_t)(end - second)))
		return RECORD_JUNK;
	return RECORD_PID;
}

/* Read the PID of the semlock: the ":12344" before "@HOST". */
static bool read_semlock(struct record *record, const char **text)
{
	if (*(*text)++ != ':')
		return false;
	return set_pid(&record->semlock, parse_number(text)) && record->semlock > 0;
}

/* 12345:578573:BOOT:PIDNS:12344@HOST, and nothing else. */
static enum record_kind read_line(struct record *record, const char *text)
{
	const char *p = text, *end;
	int64_t start, pidns;

	if (!set_pid(&record->pid, parse_number(&p)) || record->pid == 0 || *p++ != ':' ||
	    (start = parse_number(&p)) < 0 || *p++ != ':')
		return RECORD_JUNK;
	end = strchr(p, ':');
	if (end == NULL || !set_word(record->boot, sizeof record->boot, p, (size_t)(end - p)))
		return RECORD_JUNK;
	p = end + 1;
	if ((pidns = parse_number(&p)) < 0 || !read_semlock(record, &p) || *p++ != '@' ||
	    !set_word(record->host, HOST_SIZE, p, strlen(p)))
		return RECORD_JUNK;
	record->start = (uint64_t)start;
	record->pidns = (uint64_t)pidns;
	record->uid = (uid_t)-1;
	return RECORD_FULL;
}

static enum record_kind read_text(struct record *record, const char *text)
{
	enum record_kind kind;

	if (strncmp(text, "pid ", 4) == 0) /* git begins its lock files with this */
		text += 4;
	*record = (struct record){.kind = RECORD_JUNK};
	kind = read_decimal(record, text);
	if (kind != RECORD_JUNK)
		return kind;
	*record = (struct record){.kind = RECORD_JUNK};
	return read_line(record, text);
}

void record_read(struct record *record, const char *text, size_t length)
{
	char copy[RECORD_LIMIT + 1];

	*record = (struct record){.kind = RECORD_EMPTY};
	if (length == 0)
		return;
	while (length > 0 && length <= RECORD_LIMIT && text[length - 1] == '\0')
		length--; /* shadow's lock files end in a '\0' */
	if (length == 0 || length > RECORD_LIMIT || memchr(text, '\0', length) != NULL) {
		record->kind = RECORD_JUNK;
		return;
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	record->kind = read_text(record, copy);
	if (record->kind == RECORD_JUNK)
		*record = (struct record){.kind = RECORD_JUNK};
}

bool record_of_boot(const struct record *record, const char *boot)
{
	size_t length = strlen(record->boot);

	return strcmp(record->boot, boot) == 0 ||
	       (length == BOOT_SHORT && strncmp(record->boot, boot, length) == 0);
}

/* ---- a record is written ---- */

size_t record_write(const struct record *record, const char *method, char text[RECORD_LONGEST])
{
	int length = snprintf(text, RECORD_LONGEST, "%ld\n", (long)record->pid);

	if (method == NULL)
		return (size_t)length;
	length += snprintf(text + length, RECORD_LONGEST - (size_t)length,
	    MAGIC "%s\nstart=%llu boot=%s pidns=%llu flock=%d semlock=%ld\n"
		  "host=%s machine=%s since=%lld uid=%lu\n",
	    method, (unsigned long long)record->start, record->boot,
	    (unsigned long long)record->pidns, record->flocked, (long)record->semlock, record->host,
	    record->machine, (long long)record->since, (unsigned long)record->uid);

	return (size_t)length;
}

size_t record_write_line(const struct record *record, char text[RECORD_LONGEST])
{
	return (size_t)snprintf(text, RECORD_LONGEST, "%ld:%llu:%.*s:%llu:%ld@%s",
	    (long)record->pid, (unsigned long long)record->start, BOOT_SHORT, record->boot,
	    (unsigned long long)record->pidns, (long)record->semlock, record->host);
}

void record_describe(struct record *record, pid_t pid)
{
	const struct host_id *system = host_id();
	struct procfs_stat seen;

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
	record->start = process_stat(pid, &seen) ? seen.started : 0;
}

/* ---- is the holder alive? ---- */

/* "-" means that the boot could not be determined, now or when the record was written (no
 * descriptor, no /proc): such a boot counts neither as the same nor as another. */
static bool boot_known(const char *boot)
{
	return boot[0] != '\0' && strcmp(boot, "-") != 0;
}

/* On a local file system, a record of this boot is of this host, whatever host it names: each
 * container has a name of its own, and a name can change.  (Copies of a virtual machine share a
 * boot, but no local file system.) */
static bool other_host(const struct record *record, const struct facts *facts)
{
	if (facts->local && record->kind == RECORD_FULL && boot_known(record->boot) &&
	    record_of_boot(record, facts->host_id->boot))
		return false;
	if (record->host[0] != '\0' && strcmp(record->host, facts->host_id->host) != 0)
		return true;
	return record->machine[0] != '\0' && strcmp(record->machine, facts->host_id->machine) != 0;
}

static bool life_lasts(const struct life *life)
{
	return life->process == PROCESS_HIDDEN ||
	       (life->process == PROCESS_SEEN && !procfs_ended(life->state));
}

/* Does the semlock that would release the lock still live?  The semlock is the holder's parent, so
 * a process that started later than the holder has merely reused the semlock's PID.  If the object
 * is under flock(2) while the holder lives, only the flock counts. */
static bool semlock_is_there(const struct record *record, const struct facts *facts)
{
	const struct life *life = &facts->semlock;

	if (record->flocked || record->semlock <= 0 || !life_lasts(life))
		return false;
	return life->process == PROCESS_HIDDEN || record->start == 0 ||
	       life->start <= record->start;
}

/* Rows 6 to 11: the process with the recorded PID.  Row 9 is ALIVE although no process has the
 * flock: semlock was killed and the command has closed its descriptors, or semlock is between two
 * steps. */
static enum verdict judge_process(const struct record *record, const struct facts *facts)
{
	const struct life *life = &facts->holder;

	if (!life_lasts(life)) /* row 6: gone; row 7: a zombie */
		return DEAD;
	if (life->process == PROCESS_SEEN && record->start != 0 && record->start != life->start)
		return DEAD; /* row 8: another process has reused the PID */
	return ALIVE;        /* row 9: same start; row 10: start unknown; row 11: hidden */
}

static bool names_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind == RECORD_EMPTY || record->kind == RECORD_JUNK || record->pid <= 0)
		return true;
	return facts->host_id->pid_max > 0 && record->pid > facts->host_id->pid_max;
}

/* Row 12: no process is named.  After a power failure a file can be there without its contents. */
static enum verdict judge_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind != RECORD_EMPTY)
		return UNKNOWN;
	if (facts->young)
		return ALIVE;
	return facts->before_boot && facts->local ? DEAD : UNKNOWN;
}

/* Does the process that RECORD names exist, with the start time that RECORD gives? */
static bool is_seen(const struct record *record, const struct facts *facts)
{
	return life_lasts(&facts->holder) && facts->holder.process == PROCESS_SEEN &&
	       record->start != 0 && record->start == facts->holder.start;
}

/* The first row that matches decides.  Row 1, ALIVE if another process has the object under
 * flock(2), is up to the caller: step I3. */
static enum verdict verdict_by_row(const struct record *record, const struct facts *facts)
{
	const bool full = record->kind == RECORD_FULL;
	const bool ours = boot_known(record->boot) && record_of_boot(record, facts->host_id->boot);
	/* If the holder is seen, it is not dead, whatever else differs: the recorded boot may be
	 * wrong. */
	const bool seen = is_seen(record, facts);

	if (full && !ours && boot_known(record->boot) && boot_known(facts->host_id->boot) &&
	    facts->local && !seen && !other_host(record, facts))
		return DEAD; /* row 2: of an earlier boot */
	if (other_host(record, facts))
		return UNKNOWN; /* row 3: of another host */
	if (!facts->local && (record->host[0] == '\0' || (full && !ours)))
		/* row 3: of another host, perhaps */
		return names_nobody(record, facts) ? judge_nobody(record, facts) : UNKNOWN;
	if (record->pidns != 0 && facts->host_id->pidns == 0 && life_lasts(&facts->holder))
		/* row 4: without /proc our namespace is not known, and may be the recorded one */
		return ALIVE;
	if (record->pidns != 0 && record->pidns != facts->host_id->pidns)
		/* row 4, row 5: of another PID namespace */
		return full && record->flocked && facts->local && !seen ? DEAD : UNKNOWN;
	if (names_nobody(record, facts))
		return judge_nobody(record, facts); /* row 12: no process is named */
	if (semlock_is_there(record, facts))
		/* the holder may be dead (rows 6 to 8), but its semlock is about to release the
		 * lock */
		return ALIVE;
	return judge_process(record, facts);
}

enum verdict record_verdict(const struct record *record, const struct facts *facts)
{
	enum verdict verdict = verdict_by_row(record, facts);

	return verdict == DEAD && record->earlier ? UNKNOWN : verdict;
}

static void read_life(pid_t pid, struct life *life)
{
	struct procfs_stat seen;

	life->process = PROCESS_GONE;
	if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH))
		return;
	life->process = PROCESS_HIDDEN;
	if (!process_numbers_ours() || !process_stat(pid, &seen))
		return;
	life->process = PROCESS_SEEN;
	life->state = seen.state;
	life->start = seen.started;
}

void record_verdict_ask(const struct record *record, struct facts *facts, pid_t ours)
{
	read_life(record->pid == ours ? 0 : record->pid, &facts->holder);
	read_life(record->semlock == getpid() ? 0 : record->semlock, &facts->semlock);
}

pid_t record_awaited(const struct record *record)
{
	struct life holder;

	read_life(record->pid, &holder);
	return life_lasts(&holder) || record->semlock <= 0 ? record->pid : record->semlock;
}
