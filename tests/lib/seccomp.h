/* SPDX-License-Identifier: MIT */
/* seccomp.h - filters of system calls: what <linux/filter.h> and <linux/seccomp.h> declare, which
 * musl-gcc does not have. */
#ifndef SEMLOCK_TESTS_LIB_SECCOMP_H
#define SEMLOCK_TESTS_LIB_SECCOMP_H

#include <stdint.h>
#include <sys/ioctl.h>

enum { LOAD = 0x20, IF_EQUAL = 0x15, IF_ANY_BIT = 0x45, RETURN = 0x06 };

#define ALLOW 0x7fff0000U
#define NOTIFY 0x7fc00000U
#define REFUSE(errnum) (0x00050000U | (unsigned)(errnum))

struct instruction {
	uint16_t code;
	uint8_t yes, no; /* how many instructions to skip */
	uint32_t k;
};

/* What the filter sees of a call. */
struct call {
	int32_t number;
	uint32_t architecture;
	uint64_t instruction_pointer, arguments[6];
};

struct program {
	unsigned short length;
	struct instruction *filter;
};

enum { SET_FILTER = 1 };                                /* seccomp(2): what to do ... */
enum { NEW_LISTENER = 1 << 3, WAIT_KILLABLE = 1 << 5 }; /* ... and how */

/* What a listener hears, and answers.  (With syscall(2): musl's ioctl(2) takes an int.) */
struct notice {
	uint64_t id;
	uint32_t pid, flags;
	struct call call;
};

struct answer {
	uint64_t id;
	int64_t value;
	int32_t error;
	uint32_t flags;
};

enum { CONTINUE = 1 }; /* ANSWER.flags: make the call */

#define HEAR _IOWR('!', 0, struct notice)
#define ANSWER _IOWR('!', 1, struct answer)

#endif
