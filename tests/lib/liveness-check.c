/* SPDX-License-Identifier: MIT */
/* liveness-check - every row of the liveness table, and every format of a record, one line of TAP
 * each. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "methods/file/owner_record.h"
#include "sys/process.h"

static int count, failed;

static const struct host_id this_system = {
    .boot = "boot-a",
    .host = "vm",
    .machine = "machine-a",
    .pidns = 100,
    .pid_max = 4194304,
    .booted = 1000,
};

static const char *name_of(enum verdict verdict)
{
	return verdict == ALIVE ? "alive" : verdict == DEAD ? "dead" : "unknown";
}

static void check(bool good, const char *what, const char *got)
{
	count++;
	failed += !good;
	printf("%s %d %s%s%s\n", good ? "ok" : "not ok", count, what, good ? "" : ": ",
	    good ? "" : got);
}

/* A record of a living holder on this host, and the facts that match it. */
static struct record full(void)
{
	return (struct record){
	    .kind = RECORD_FULL,
	    .pid = 4242,
	    .start = 77,
	    .pidns = 100,
	    .flocked = true,
	    .boot = "boot-a",
	    .host = "vm",
	    .machine = "machine-a",
	};
}

static struct record bare(pid_t pid)
{
	return (struct record){.kind = RECORD_PID, .pid = pid};
}

static struct facts seen(void)
{
	return (struct facts){
	    .local = true,
	    .host_id = &this_system,
	    .holder = {PROCESS_SEEN, 'S', 77},
	    .semlock = {PROCESS_SEEN, 'S', 76},
	};
}

static void expect(const char *what, struct record record, struct facts facts, enum verdict verdict)
{
	enum verdict got = record_verdict(&record, &facts);

	check(got == verdict, what, name_of(got));
}

static void rows(void)
{
	struct host_id no_boot = this_system, whole = this_system, no_proc = this_system;
	struct facts nowhere = seen();
	struct record us = full(), empty = {.kind = RECORD_EMPTY}, junk = {.kind = RECORD_JUNK};
	struct facts there = seen(), gone = seen(), far = seen();
	struct record other, later;
	struct facts changed;

	gone.holder.process = PROCESS_GONE;
	far.local = false;

	other = us;
	strcpy(whole.boot, "00408284-6773-4d8d");
	strcpy(other.boot, "00408284-6773");
	changed = there;
	changed.host_id = &whole;
	expect("2: of this boot, whose name was cut short", other, changed, ALIVE);
	strcpy(other.boot, "00408284-6774");
	expect("2: of another boot, its process there, started when it says", other, changed,
	    ALIVE);
	changed.holder.start++;
	expect("2: of an earlier boot, whose name was cut short", other, changed, DEAD);
	strcpy(other.boot, "00408284");
	expect("2: of an earlier boot, with a short name", other, changed, DEAD);

	later = us;
	strcpy(later.boot, "boot-b");
	expect("2: of an earlier boot, a process of that number alive", later, changed, DEAD);
	no_boot.boot[0] = '-';
	no_boot.boot[1] = '\0';
	nowhere.host_id = &no_boot;
	expect("2: our boot cannot be found out, its process alive", us, nowhere, ALIVE);
	nowhere.holder.process = PROCESS_GONE;
	expect("2: our boot cannot be found out, its process gone", us, nowhere, DEAD);
	strcpy(later.boot, "-");
	expect("2: its boot could not be found out, its process alive", later, there, ALIVE);
	strcpy(later.boot, "boot-b");
	other = later;
	strcpy(other.host, "elsewhere");
	expect("2: but of another host as well", other, there, UNKNOWN);

	other = us;
	strcpy(other.host, "elsewhere");
	expect("3: of another host, same number alive here", other, far, UNKNOWN);
	changed = far;
	changed.holder.process = PROCESS_GONE;
	expect("3: of another host, same number gone here", other, changed, UNKNOWN);
	expect("3: of this boot, when the host had another name, alive", other, there, ALIVE);
	expect("3: of this boot, when the host had another name, gone", other, gone, DEAD);
	strcpy(other.boot, "-");
	expect("3: of another host, its boot could not be found out", other, gone, UNKNOWN);
	other = bare(4242);
	strcpy(other.host, "elsewhere");
	expect("3: a PID of another host", other, gone, UNKNOWN);
	other = us;
	strcpy(other.machine, "machine-b");
	expect("3: of another machine", other, changed, UNKNOWN);
	changed = far;
	changed.holder.process = PROCESS_GONE;
	expect("3: network file system, another boot", later, changed, UNKNOWN);
	expect("3: network file system, a bare PID", bare(4242), changed, UNKNOWN);
	expect("3: network file system, our host and boot, gone", us, changed, DEAD);
	other = us;
	strcpy(other.boot, "-");
	changed.host_id = &no_boot;
	expect("3: network file system, our host's name, and neither boot could be found out",
	    other, changed, UNKNOWN);
	other = bare(4242);
	strcpy(other.host, "vm");
	expect("3: network file system, a PID of our host, gone", other, changed, DEAD);

	other = us;
	other.pidns = 101;
	expect("4: of another PID namespace, was flocked, is not", other, gone, DEAD);
	expect("4: the same on a network file system", other, far, UNKNOWN);
	strcpy(other.host, "container");
	strcpy(other.machine, "-");
	expect("4: of a container of this boot, was flocked, is not", other, gone, DEAD);
	expect("4: of a container, its process here, started when it says", other, there, UNKNOWN);
	changed = there;
	changed.host_id = &no_proc;
	no_proc.pidns = 0;
	changed.holder.process = PROCESS_HIDDEN;
	expect("4: perhaps of another PID namespace, and some process has the number", us, changed,
	    ALIVE);
	changed.holder.process = PROCESS_GONE;
	expect("4: perhaps of another PID namespace, and no process has the number", us, changed,
	    DEAD);
	other.flocked = false;
	expect("5: of another PID namespace, never flocked", other, gone, UNKNOWN);
	other = bare(4242);
	other.pidns = 101;
	expect("5: a foreign record of another PID namespace", other, gone, UNKNOWN);

	expect("6: the process is gone", us, gone, DEAD);
	expect("6: the process of a bare PID is gone", bare(4242), gone, DEAD);
	changed = there;
	changed.holder.state = 'Z';
	expect("7: a zombie", us, changed, DEAD);
	changed.holder.state = 'X';
	expect("7: nearly gone", bare(4242), changed, DEAD);
	changed = there;
	changed.holder.start = 78;
	expect("8: another process has the number", us, changed, DEAD);
	expect("8: not to be told for a bare PID", bare(4242), changed, ALIVE);
	other = us;
	other.semlock = 4241;
	expect("6: gone, was flocked, is not, and its semlock is there", other, gone, DEAD);
	other.flocked = false;
	expect("6: gone, but its semlock is there, started before it", other, gone, ALIVE);
	expect("8: another has the number, but its semlock is there", other, changed, ALIVE);
	changed = gone;
	changed.semlock.start = 77;
	expect("6: gone, its semlock there, started in the same tick", other, changed, ALIVE);
	changed.semlock.start = 78;
	expect("6: gone, another has the number of its semlock", other, changed, DEAD);
	other.start = 0;
	expect("6: gone, whose the number of its semlock is cannot be told", other, changed, ALIVE);
	other.start = 77;
	changed = gone;
	changed.semlock.state = 'Z';
	expect("7: gone, and its semlock a zombie", other, changed, DEAD);
	changed.semlock.process = PROCESS_HIDDEN;
	expect("11: gone, and its semlock there, and hidden", other, changed, ALIVE);
	changed.semlock.process = PROCESS_GONE;
	expect("6: both gone", other, changed, DEAD);
	changed.holder = there.holder;
	expect("10: the semlock gone, the holder there", other, changed, ALIVE);
	changed = there;
	changed.holder.start = 78;
	expect("9: the same process, its flock free", us, there, ALIVE);
	other = us;
	other.start = 0;
	expect("10: no start time in the record", other, changed, ALIVE);
	expect("10: a bare PID", bare(4242), there, ALIVE);
	changed = there;
	changed.holder.state = 'T';
	expect("10: stopped", us, changed, ALIVE);
	changed = there;
	changed.holder.process = PROCESS_HIDDEN;
	expect("11: there, and hidden", us, changed, ALIVE);
	expect("11: there, and hidden, a bare PID", bare(1), changed, ALIVE);

	expect("12: PID 0", bare(0), gone, UNKNOWN);
	expect("12: junk", junk, gone, UNKNOWN);
	expect("12: more than pid_max", bare(4194305), gone, UNKNOWN);
	expect("12: empty", empty, gone, UNKNOWN);
	changed = gone;
	changed.young = true;
	expect("12: empty and young", empty, changed, ALIVE);
	expect("12: junk is not young", junk, changed, UNKNOWN);
	changed.young = false;
	changed.before_boot = true;
	expect("12: empty, and older than this boot", empty, changed, DEAD);
	changed.local = false;
	expect("12: the same on a network file system", empty, changed, UNKNOWN);
	changed.local = true;
	expect("12: junk, and older than this boot", junk, changed, UNKNOWN);
}

static void read_as(const char *what, const char *text, size_t length, enum record_kind kind,
    pid_t pid, const char *host)
{
	struct record record;
	char got[200];

	record_read(&record, text, length);
	snprintf(got, sizeof got, "kind %d pid %ld host '%s'", (int)record.kind, (long)record.pid,
	    record.host);
	check(record.kind == kind && record.pid == pid && strcmp(record.host, host) == 0, what,
	    got);
}

#define READ(what, text, kind, pid, host) read_as(what, text, sizeof text - 1, kind, pid, host)

static void formats(void)
{
	static char big[RECORD_LIMIT + 1];

	READ("nothing", "", RECORD_EMPTY, 0, "");
	READ("a PID", "12345\n", RECORD_PID, 12345, "");
	READ("a PID without a newline", "12345", RECORD_PID, 12345, "");
	READ("HDB and X: ten columns", "     12345\n", RECORD_PID, 12345, "");
	READ("zeros before it", "0000012345\n", RECORD_PID, 12345, "");
	READ("procmail's 0", "0", RECORD_PID, 0, "");
	READ("liblockfile's 0", "0\n", RECORD_PID, 0, "");
	READ("shadow: a NUL behind it", "12345\0", RECORD_PID, 12345, "");
	READ("GnuPG: host in the second line", "     12345\nvm\n", RECORD_PID, 12345, "vm");
	READ("git", "pid 12345\n", RECORD_PID, 12345, "");
	READ("another program's words about a PID", "joe@vm.12345:1700000000", RECORD_JUNK, 0, "");
	READ("a host before the PID", "vm:12345", RECORD_JUNK, 0, "");
	READ("four raw bytes", "\x39\x05\0\0", RECORD_JUNK, 0, "");
	READ("four letters", "abcd", RECORD_JUNK, 0, "");
	READ("a negative number", "-5\n", RECORD_JUNK, 0, "");
	READ("a number too big", "99999999999999999999999\n", RECORD_JUNK, 0, "");
	READ("a PID and words", "12345 abc\n", RECORD_PID, 12345, "");
	READ("minicom's", "     12345 minicom root\n", RECORD_PID, 12345, "");
	READ("a number and words without a newline", "12345 abc", RECORD_JUNK, 0, "");
	READ("two numbers", "12345 67\n", RECORD_JUNK, 0, "");
	READ("a number and more lines", "12345 abc\ndef\n", RECORD_JUNK, 0, "");
	READ("a NUL in the middle",
	    "12\0"
	    "45\n",
	    RECORD_JUNK, 0, "");
	READ("words", "hello world\n", RECORD_JUNK, 0, "");
	READ("a line of ours", "5:6:b:7:4@vm", RECORD_FULL, 5, "vm");
	READ("a line of ours, without its semlock", "5:6:b:7@vm", RECORD_JUNK, 0, "");
	READ("a line of ours, its semlock 0", "5:6:b:7:0@vm", RECORD_JUNK, 0, "");
	READ("a line of ours, its semlock missing", "5:6:b:7:@vm", RECORD_JUNK, 0, "");
	READ("a line of ours, with one number more", "5:6:b:7:4:3@vm", RECORD_JUNK, 0, "");
	READ("ours",
	    "12345\nsemlock/1 excl\nstart=5 boot=x pidns=1 flock=0 semlock=4\nhost=h machine=m "
	    "since=1 uid=0\n",
	    RECORD_FULL, 12345, "h");
	READ("ours, without its semlock",
	    "12345\nsemlock/1 excl\nstart=5 boot=x pidns=1 flock=0\nhost=h machine=m since=1 "
	    "uid=0\n",
	    RECORD_JUNK, 0, "");
	READ("ours, without its user",
	    "12345\nsemlock/1 excl\nstart=5 boot=x pidns=1 flock=0 semlock=4\nhost=h machine=m "
	    "since=1\n",
	    RECORD_JUNK, 0, "");
	READ("ours, cut off", "12345\nsemlock/1 excl\nstart=5 boot=x pid", RECORD_JUNK, 0, "");
	READ("ours, of another version", "12345\nsemlock 2 excl\n", RECORD_JUNK, 0, "");
	memset(big, '1', sizeof big);
	read_as("more than is read", big, sizeof big, RECORD_JUNK, 0, "");
}

static void back_and_forth(void)
{
	struct record record = full(), again;
	char text[RECORD_LONGEST];
	size_t length;

	record.since = 123;
	record.uid = 7;
	length = record_write(&record, "excl", text);
	record_read(&again, text, length);
	check(again.kind == RECORD_FULL && again.pid == 4242 && again.start == 77 &&
		  again.pidns == 100 && again.flocked && strcmp(again.boot, "boot-a") == 0 &&
		  strcmp(again.machine, "machine-a") == 0 && again.since == 123 && again.uid == 7,
	    "a record is read as it was written", text);
	record.semlock = 4241;
	length = record_write_line(&record, text);
	record_read(&again, text, length);
	check(again.kind == RECORD_FULL && again.pid == 4242 && again.start == 77 &&
		  again.semlock == 4241 && again.pidns == 100 &&
		  strcmp(again.boot, "boot-a") == 0 && strcmp(again.host, "vm") == 0,
	    "a line is read as it was written", text);
}

static void processes(void)
{
	struct procfs_stat stat;

	check(procfs_stat("12 (a) S 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4711 23 24",
		  &stat) &&
		  stat.state == 'S' && stat.started == 4711,
	    "a process", "something else");
	check(procfs_stat("12 (a) Z 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 2 19 4711 23 24",
		  &stat) &&
		  stat.state == 'S',
	    "a process that runs without its first thread", "one that has ended");
	check(procfs_stat("12 () ) R 1 () Z 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 1 19 4711 23",
		  &stat) &&
		  stat.state == 'Z' && stat.started == 4711,
	    "a process called \") ) R 1 (\"", "something else");
	check(!procfs_stat("", &stat), "no process", "one");
	check(!procfs_stat("12 (a) S 1 2", &stat), "a process cut off", "one");
}

int main(void)
{
	rows();
	formats();
	back_and_forth();
	processes();
	printf("1..%d\n", count);
	return failed > 0;
}
