/* SPDX-License-Identifier: MIT */
/* The command line, one word a line.  Either the words are refused, with a message and a status of
 * error.h; or every value is in range, and no two contradict each other.
 *
 * The linker replaces the functions that would end the program or touch the system:
 * die, usage_help, usage_version, named_lock_path, status_fd_use and memory_lasting. */
#include <config.h>

#include <getopt.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include "fuzz.h"
#include "cli/named_lock.h"
#include "cli/read_request.h"
#include "report/error.h"
#include "lock/lock.h"

enum { MOST_WORDS = 40 };

noreturn void __wrap_die(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);
noreturn void __wrap_usage_help(void);
noreturn void __wrap_usage_version(bool as_flock);
char *__wrap_named_lock_path(const char *name, bool create, struct error *error);
int __wrap_status_fd_use(int fd);
void *__wrap_memory_lasting(size_t size);

static jmp_buf ended;
static bool null_was_said; /* by the command line itself */

void __wrap_die(int status, const char *fmt, ...)
{
	char words[8192];
	va_list args;

	MUST(status == EXIT_USAGE || status == EXIT_UNAVAILABLE || status == EXIT_SYSTEM ||
	     status == EXIT_CANTCREATE || status == EXIT_NOTOPEN || status == EXIT_NOTFOUND);
	va_start(args, fmt);
	MUST(vsnprintf(words, sizeof words, fmt, args) > 0);
	va_end(args);
	MUST(null_was_said || strstr(words, "(null)") == NULL);
	longjmp(ended, 1);
}

void __wrap_usage_help(void)
{
	longjmp(ended, 1);
}

void __wrap_usage_version(bool as_flock)
{
	(void)as_flock;
	longjmp(ended, 1);
}

char *__wrap_named_lock_path(const char *name, bool create, struct error *error)
{
	static char path[] = "/run/user/0/semlock/name";

	(void)create;
	if (*name != '\0')
		return path;
	error_plain(error, ERROR_USAGE, "no name");
	return NULL;
}

int __wrap_status_fd_use(int fd)
{
	MUST(fd >= 0);
	return fd <= 2 ? 0 : -1;
}

/* Memory of one command line only. */
static void *lasting[8];

void *__wrap_memory_lasting(size_t size)
{
	for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
		if (lasting[i] == NULL)
			return lasting[i] = calloc(1, size);
	return NULL;
}

static void forget_lasting(void)
{
	for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++) {
		free(lasting[i]);
		lasting[i] = NULL;
	}
}

static void values(const struct request *o)
{
	MUST(o->wait >= -1 && o->spec.stale >= 0 && o->spec.ttl >= 0);
	MUST(o->run_timeout >= 0 && o->kill_after >= 0);
	MUST(o->busy_status >= 0 && o->busy_status <= 255);
	MUST(o->spec.slots <= SLOTS_MOST && o->spec.create_mode <= 0777);
	MUST(o->signal >= 0 && o->signal < NSIG && o->preempt_signal >= 0 &&
	     o->preempt_signal < NSIG);
	MUST(o->spec.range.start >= 0 && o->spec.range.length >= 0);
	MUST(o->spec.range.start <= LLONG_MAX - o->spec.range.length);
}

static void locks(const struct request *o, int count)
{
	bool on_server = o->spec.method->family == ON_SERVER;

	MUST(o->nlocks <= (unsigned)count + 1);
	MUST(o->who || (o->nlocks > 0 && o->label != NULL)); /* --who alone: all locks */
	for (unsigned i = 0; i < o->nlocks; i++)
		MUST(o->locks[i].name != NULL || (i == 0 && o->locks[i].fd >= 0));
	MUST(!on_server || o->nlocks == 1);
	MUST(o->command == NULL || *o->command != NULL);
}

static void together(const struct request *o)
{
	unsigned can = o->spec.method->can;

	MUST(!(o->json && !o->who));
	MUST(o->command != NULL || o->who || o->hold || o->held || o->release != NULL ||
	     o->locks[0].name == NULL || o->spec.init);
	MUST(!(o->held && o->command != NULL));
	MUST(!(o->who && o->command != NULL) && !(o->hold && o->command != NULL));
	MUST(!o->become || (!o->spec.to_be_removed && !o->close_fd && o->run_timeout == 0));
	MUST(o->spec.slots == 0 || (o->nlocks == 1 && (can & CAN_SLOTS) != 0 &&
				       o->spec.range.start == 0 && o->spec.range.length == 0));
	MUST((o->spec.range.start == 0 && o->spec.range.length == 0) || (can & CAN_RANGE) != 0);
	MUST(o->spec.stale == 0 || o->spec.method->family != OF_KERNEL);
	MUST(o->spec.ttl == 0 || o->spec.method->family == ON_SERVER);
	MUST(o->locks[0].name != NULL || (can & CAN_FD) != 0);
	MUST(o->spec.method->family != OF_FILES ||
	     (o->locks[0].mode == EXCLUSIVE && o->spec.slots == 0));
}

static int cut(char *text, char **words)
{
	int count = 0;
	char *end;

	for (; count < MOST_WORDS; text = end + 1) {
		end = strchr(text, '\n');
		if (end != NULL)
			*end = '\0';
		words[count++] = text;
		if (end == NULL || end[1] == '\0')
			break;
	}
	words[count] = NULL;
	return count;
}

static void parse(struct request *request, int count, char **words)
{
	if (setjmp(ended) != 0)
		return;
	request_read(request, count, words);
	values(request);
	locks(request, count);
	together(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request request;
	char *words[MOST_WORDS + 1];
	char *text = fuzz_text(data, size);

	optind = 0; /* from the start, as for the first reader */
	report_as("semlock");
	null_was_said = memmem(data, size, "(null)", 6) != NULL;
	parse(&request, cut(text, words), words);
	forget_lasting();
	free(text);
	return 0;
}
