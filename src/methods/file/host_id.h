/* SPDX-License-Identifier: MIT */
/* methods/file/host_id.h - this system, as far as a lock's record can name it. */
#ifndef SEMLOCK_METHODS_FILE_HOST_ID_H
#define SEMLOCK_METHODS_FILE_HOST_ID_H

#include <stdint.h>
#include <sys/types.h>

/* The inode of the machine's first PID namespace, which sees all processes. */
#define FIRST_PIDNS 0xEFFFFFFC

enum { BOOT_SIZE = 40, HOST_SIZE = 65 };

/* "-" stands for a name that cannot be found out. */
struct host_id {
	char boot[BOOT_SIZE];
	char host[HOST_SIZE];
	char machine[HOST_SIZE];
	uint64_t pidns; /* 0: unknown */
	pid_t pid_max;  /* 0: unknown */
	int64_t booted; /* seconds since 1970, by today's clock */
};

/* Looked up once; any thread may ask. */
const struct host_id *host_id(void);

#endif
