/* SPDX-License-Identifier: MIT */
/* Holder records, of semlock and of other programs: a parsed value is in range; a record that is
 * not understood says nothing, so that no holder is taken for dead by it; a full record that is
 * written and read again is the same. */
#include <config.h>

#include "fuzz.h"
#include "methods/file/owner_record.h"

static void same(const struct record *a, const struct record *b)
{
	MUST(a->kind == b->kind && a->pid == b->pid && a->start == b->start);
	MUST(a->pidns == b->pidns);
	MUST(strcmp(a->boot, b->boot) == 0 && strcmp(a->host, b->host) == 0);
}

static void read_again(const struct record *record)
{
	char text[RECORD_LONGEST];
	struct record again;
	size_t length = record_write(record, "excl", text);

	MUST(length < sizeof text && strlen(text) == length);
	if (record->machine[0] != '\0') {
		record_read(&again, text, length);
		same(record, &again);
		MUST(again.since == record->since && again.uid == record->uid);
		MUST(again.flocked == record->flocked &&
		     strcmp(again.machine, record->machine) == 0);
		/* The rest of a record that a crash has cut off is never taken for the whole. */
		for (size_t part = 0; part < length; part++) {
			record_read(&again, text, part);
			MUST(again.kind != RECORD_FULL);
		}
	}
	length = record_write_line(record, text);
	MUST(length < sizeof text && strlen(text) == length);
	if (strchr(record->boot, ':') == NULL) {
		struct record cut = *record;

		cut.boot[BOOT_SHORT] = '\0';
		record_read(&again, text, length);
		same(&cut, &again);
		MUST(again.semlock == record->semlock && record_of_boot(&again, record->boot));
	}
}

static void in_range(const struct record *record)
{
	MUST(record->pid >= 0);
	MUST(memchr(record->boot, '\0', sizeof record->boot) != NULL);
	MUST(memchr(record->host, '\0', sizeof record->host) != NULL);
	MUST(memchr(record->machine, '\0', sizeof record->machine) != NULL);
	if (record->kind == RECORD_JUNK || record->kind == RECORD_EMPTY)
		MUST(record->pid == 0 && record->host[0] == '\0' && record->boot[0] == '\0' &&
		     record->start == 0 && record->pidns == 0 && !record->flocked);
	if (record->kind == RECORD_FULL)
		MUST(record->pid > 0 && record->boot[0] != '\0' && record->host[0] != '\0');
	MUST(record->semlock >= 0);
	if (record->kind == RECORD_PID)
		MUST(record->boot[0] == '\0' && !record->flocked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct record record;

	memset(&record, 0x5a, sizeof record);
	record_read(&record, text, size);
	MUST((record.kind == RECORD_EMPTY) == (size == 0));
	in_range(&record);
	if (record.kind == RECORD_FULL)
		read_again(&record);
	free(text);
	return 0;
}
