/* SPDX-License-Identifier: MIT */
/* locksmith/s3/aws_process.h - a program that the profile names to give the login
 * (credential_process): the way to single sign-on and to other sources that Amazon's clients
 * have. */
#ifndef SEMLOCK_LOCKSMITH_S3_AWS_PROCESS_H
#define SEMLOCK_LOCKSMITH_S3_AWS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "report/error.h"

/* Run COMMAND with /bin/sh and copy what it prints into TEXT, SIZE bytes, with a NUL.  It has until
 * the moment UNTIL; then its process group is killed.  Its standard error is ours.  Returns 0, or
 * -1 with ERROR filled: ERROR_AWAY: it is late; ERROR_PERMISSION: it failed, or printed too much;
 * ERROR_SYSTEM. */
int aws_process_run(const char *command, char *text, size_t size, int64_t until,
    struct error *error);

#endif
