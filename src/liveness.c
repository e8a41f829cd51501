#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "liveness.h"
#include "process.h"

static bool same_boot(const struct record *record, const struct facts *facts)
{
	return strcmp(record->boot, facts->here->boot) == 0;
}

/* "-" is what stands for a boot whose name could not be found out, today or then: no file
 * could be opened, there was no /proc.  Then it says nothing, least of all that one is dead. */
static bool known(const char *boot)
{
	return boot[0] != '\0' && strcmp(boot, "-") != 0;
}

static bool other_boot(const struct record *record, const struct facts *facts)
{
	return known(record->boot) && known(facts->here->boot) && !same_boot(record, facts);
}

static bool other_host(const struct record *record, const struct facts *facts)
{
	if (record->host[0] != '\0' && strcmp(record->host, facts->here->host) != 0)
		return true;
	return record->machine[0] != '\0' && strcmp(record->machine, facts->here->machine) != 0;
}

/* Rows 6 to 11: the process with that number. */
static enum verdict judge_process(const struct record *record, const struct facts *facts)
{
	switch (facts->process) {
	case PROCESS_GONE:
		return DEAD; /* 6 */
	case PROCESS_HIDDEN:
		return ALIVE; /* 11: it is there, whoever it is */
	case PROCESS_SEEN:
		break;
	}
	/* A zombie answers kill(2) as the living do, and holds nothing. */
	if (facts->state == 'Z' || facts->state == 'X')
		return DEAD; /* 7 */
	if (record->start != 0 && record->start != facts->start)
		return DEAD; /* 8: another process has got the number */
	/* 9: although its flock is free: semlock was killed and the command has closed its
	 * descriptors, or it is between two steps.  10: that is all there is to know. */
	return ALIVE;
}

static bool names_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind == RECORD_EMPTY || record->kind == RECORD_JUNK || record->pid <= 0)
		return true;
	return facts->here->pid_max > 0 && record->pid > facts->here->pid_max;
}

/* Row 12.  After a power failure a file can be there and its contents not. */
static enum verdict judge_nobody(const struct record *record, const struct facts *facts)
{
	if (record->kind != RECORD_EMPTY)
		return UNKNOWN;
	if (facts->young)
		return ALIVE;
	return facts->before_boot && facts->local ? DEAD : UNKNOWN;
}

/* The rows of the table, in order; the first that fits decides. */
enum verdict liveness(const struct record *record, const struct facts *facts)
{
	bool full = record->kind == RECORD_FULL;

	if (facts->flocked)
		return ALIVE; /* 1 */
	if (full && other_boot(record, facts) && facts->local && !other_host(record, facts))
		return DEAD; /* 2 */
	if (other_host(record, facts))
		return UNKNOWN; /* 3 */
	if (!facts->local && (record->host[0] == '\0' || (full && !same_boot(record, facts))))
		return names_nobody(record, facts) ? judge_nobody(record, facts) : UNKNOWN; /* 3 */
	if (record->pidns != 0 && record->pidns != facts->here->pidns)
		return full && record->flocked && facts->local ? DEAD : UNKNOWN; /* 4, 5 */
	if (names_nobody(record, facts))
		return judge_nobody(record, facts); /* 12 */
	return judge_process(record, facts);
}

void liveness_ask(const struct record *record, struct facts *facts, pid_t nobody)
{
	struct procfs_stat stat;

	facts->process = PROCESS_GONE;
	if (record->pid <= 0 || record->pid == nobody)
		return;
	if (kill(record->pid, 0) != 0 && errno == ESRCH)
		return;
	facts->process = PROCESS_HIDDEN;
	if (!process_stat(record->pid, &stat))
		return;
	facts->process = PROCESS_SEEN;
	facts->state = stat.state;
	facts->start = stat.started;
}
