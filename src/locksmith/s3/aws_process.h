/* SPDX-License-Identifier: MIT */
/* locksmith/s3/aws_process.h - runs credential_process, a program that the profile names to give
 * the login.  Such a program can use single sign-on, and other sources that Amazon's clients
 * have. */
#ifndef SEMLOCK_LOCKSMITH_S3_AWS_PROCESS_H
#define SEMLOCK_LOCKSMITH_S3_AWS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "report/error.h"

/* Run COMMAND with /bin/sh and copy what it prints into TEXT (SIZE bytes), with a NUL.  COMMAND's
 * standard error is ours.  If it still runs at the moment UNTIL, kill its process group.  Returns
 * 0, or -1 with ERROR filled: ERROR_AWAY: it was late; ERROR_PERMISSION: it failed, or printed too
 * much; ERROR_SYSTEM. */
int aws_process_run(const char *command, char *text, size_t size, int64_t until,
    struct error *error);

#endif
