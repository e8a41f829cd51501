/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>

#include "cli/check_options.h"
#include "cli/option_table.h"
#include "report/error.h"
#include "sys/deadline.h"

/* Facts about a request, besides the options that were given. */
enum fact {
	NO_LOCK, /* --who without a LOCK: it reports all locks */
	COMMAND, /* a command was given */
	/* no command and no --hold: semlock ends at once, and leaves the caller's descriptor
	 * locked */
	ENDS_AT_ONCE,
	NO_OWNER, /* --hold names no PID */
	/* LOCK is a name, which -u refuses unless semlock is invoked as flock */
	UNLOCKS_A_NAME,
	LOCKS_NO_FD,    /* the method cannot lock a descriptor */
	HAS_NO_MODE,    /* the method creates a symbolic link, which has no permissions */
	NEEDS_NO_INIT,  /* the method creates its lock file itself, without --init */
	TAKES_TOO_MANY, /* --take asks for more slots than the lock has */
	/* --take asks for several slots, and the lock is a descriptor or on a server */
	TAKES_ELSEWHERE,
	WAITS_NOT,   /* -w 0 */
	LEASED_HERE, /* --ttl for a lock that is not on a server */
	FACTS_END
};

_Static_assert(OPTIONS + FACTS_END <= 64, "a set has 64 bits");

/* The facts use the highest bits of a set. */
#define FACT(id) OPTION_BIT(63 - (id))
#define FACTS (~UINT64_C(0) << (64 - FACTS_END))

static uint64_t fact_if(bool so, enum fact fact)
{
	return so ? FACT(fact) : 0;
}

static uint64_t facts_of(const struct request *request, const struct reading *reading)
{
	const struct method *method = request->spec.method;
	const bool by_fd = given(reading, OPT(FD));
	const bool elsewhere = by_fd || method->family == ON_SERVER;

	return fact_if(request->nlocks == 0, NO_LOCK) | fact_if(request->command != NULL, COMMAND) |
	       fact_if(request->command == NULL && !request->hold, ENDS_AT_ONCE) |
	       fact_if(request->owner == 0, NO_OWNER) |
	       fact_if(!by_fd && !request->as_flock, UNLOCKS_A_NAME) |
	       fact_if(!method_can(method, CAN_FD), LOCKS_NO_FD) |
	       fact_if(method->family == OF_FILES && !method_can(method, CAN_MODE), HAS_NO_MODE) |
	       fact_if(!method_can(method, NEEDS_INIT), NEEDS_NO_INIT) |
	       fact_if(request->spec.take > request->spec.slots, TAKES_TOO_MANY) |
	       fact_if(request->spec.take > 1 && elsewhere, TAKES_ELSEWHERE) |
	       fact_if(request->wait == 0, WAITS_NOT) |
	       fact_if(given(reading, OPT(TTL)) && method->family != ON_SERVER, LEASED_HERE);
}

/* The options that methods of FAMILY (KERNEL_LOCKS, ...) do not support. */
static uint64_t unknown_to(unsigned family)
{
	uint64_t unknown = 0;

	for (unsigned id = 0; id < OPTIONS; id++)
		if (((unsigned)option_rows[id].locks & family) == 0)
			unknown |= OPTION_BIT(id);
	return unknown;
}

#define ALWAYS (~UINT64_C(0))
#define NONE UINT64_C(0)

/* A row of rules.def.  A RULE has LOCKS 0; an UNKNOWN_TO has empty sets WITH and WITHOUT. */
struct rule {
	uint64_t these, with, without;
	unsigned short locks;
	/* offset of its text in TEXTS, not a pointer, which each start would relocate */
	unsigned short why;
};

#define MEMBER(line) MEMBER_OF(line)
#define MEMBER_OF(line) why_##line

static const struct texts {
#define RULE(these, with, without, why) char MEMBER(__LINE__)[sizeof(why)];
#define UNKNOWN_TO(locks, these, why) char MEMBER(__LINE__)[sizeof(why)];
#include "cli/rules.def"
} texts = {
#define RULE(these, with, without, why) why,
#define UNKNOWN_TO(locks, these, why) why,
#include "cli/rules.def"
};

static const struct rule rules[] = {
#define RULE(these, with, without, why) \
	{these, with, without, 0, offsetof(struct texts, MEMBER(__LINE__))},
#define UNKNOWN_TO(locks, these, why) \
	{these, NONE, NONE, locks, offsetof(struct texts, MEMBER(__LINE__))},
#include "cli/rules.def"
};

static bool is_broken(const struct rule *rule, uint64_t so, uint64_t unknown, unsigned family)
{
	if (rule->locks != 0)
		return (rule->locks & family) != 0 && (rule->these & unknown) != 0;
	return (rule->these & so) != 0 && (rule->with & so) != 0 && (rule->without & so) == 0;
}

void options_check(const struct request *request, const struct reading *reading)
{
	const struct method *method = request->spec.method;
	const unsigned family = 1u << method->family;
	uint64_t so, unknown;

	if (reading->given == 0)
		return;
	if (request->spec.range.length > INT64_MAX - request->spec.range.start)
		die(EXIT_USAGE, "--start and --length exceed the largest file size");
	if (given(reading, OPT(TTL)) && request->spec.ttl < 2 * SECOND)
		die(EXIT_USAGE, "--ttl: a lease lasts at least 2 seconds");
	so = reading->given | facts_of(request, reading);
	unknown = reading->given & unknown_to(family);
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (is_broken(&rules[i], so, unknown, family))
			die(EXIT_USAGE, "%s", (const char *)&texts + rules[i].why);
	for (unsigned id = 0; id < OPTIONS; id++)
		if ((unknown & OPTION_BIT(id)) != 0)
			die(EXIT_USAGE, "%s: not supported for %s locks", option_name(id),
			    method->name);
}
