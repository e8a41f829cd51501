/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/ftplist.h - the names in a listing that an FTP server sends. Pure text. */
#ifndef SEMLOCK_LOCKSMITH_FTP_FTPLIST_H
#define SEMLOCK_LOCKSMITH_FTP_FTPLIST_H

#include <stdint.h>

/* Is called with DATA for each name. */
typedef void (*ftplist_name)(void *data, const char *name);

/* Calls each with every name in the text of a reply to STAT: a first and a last line that begin
   with the reply's number, and between them lines as of ls -l, or bare names. */
void ftplist_stat(const char *reply, ftplist_name each, void *data);

/* The same for NLST: a name on each line, maybe with its directory before it. */
void ftplist_names(const char *body, ftplist_name each, void *data);

/* Finds "modify=YYYYMMDDHHMMSS" in the reply to MLST: seconds since 1970. 0, or -1 if there is none. */
int ftplist_modify(const char *reply, int64_t *seconds);

#endif
