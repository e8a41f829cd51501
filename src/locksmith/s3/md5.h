/* SPDX-License-Identifier: MIT */
/* locksmith/s3/md5.h - the Content-MD5 of a request, without which a bucket with Object Lock
 * refuses each write. */
#ifndef SEMLOCK_LOCKSMITH_S3_MD5_H
#define SEMLOCK_LOCKSMITH_S3_MD5_H

#include <stddef.h>

#define MD5_BASE64 25 /* bytes, with the final NUL */

/* Write the MD5 of the LENGTH bytes at DATA into TEXT, in base64. */
void md5_base64(const void *data, size_t length, char text[MD5_BASE64]);

#endif
