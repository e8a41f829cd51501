/* SPDX-License-Identifier: MIT */
/* locksmith/s3/aws_settings.h - what Amazon's own clients read: variables, and the profile in
 * ~/.aws/credentials and ~/.aws/config. */
#ifndef SEMLOCK_LOCKSMITH_S3_AWS_SETTINGS_H
#define SEMLOCK_LOCKSMITH_S3_AWS_SETTINGS_H

#include <stddef.h>

#include "report/error.h"

/* Copy the value of the environment variable NAME into VALUE, SIZE bytes; "": not set.  Returns 0,
 * or -1 with ERROR filled (ERROR_USAGE): too long, or a control character in it. */
int aws_variable(const char *name, char *value, size_t size, struct error *error);

/* Copy the value of KEY in the profile (AWS_PROFILE, or "default") into VALUE, SIZE bytes; "": not
 * there.  A value in the credentials file (AWS_SHARED_CREDENTIALS_FILE) takes precedence over one
 * in the config file (AWS_CONFIG_FILE).  The files are read each time, because they may have
 * changed.  Returns 0, or -1 with ERROR filled: ERROR_USAGE as aws_variable(); ERROR_PERMISSION: a
 * file cannot be read. */
int aws_profile_value(const char *key, char *value, size_t size, struct error *error);

/* The profile's name. */
const char *aws_profile(void);

struct aws_place {
	char region[64];
	/* "http://127.0.0.1:9000", without a slash at its end; "": that of Amazon */
	char endpoint[272];
};

/* Read the region and the endpoint.  The region is AWS_REGION, AWS_DEFAULT_REGION, the profile's,
 * or us-east-1.  The endpoint is AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the profile's.  Returns
 * 0, or -1 with ERROR filled. */
int aws_place_find(struct aws_place *place, struct error *error);

#endif
