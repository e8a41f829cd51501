#include <config.h>

#include "locksmith/ftp/remote.h"

#include <stdlib.h>
#include <string.h>

/* No honest reply is longer; what is beyond is not kept. */
#define LONGEST_REPLY ((size_t)256 * 1024)

enum reply remote_open(struct remote *r, const struct url *url, int64_t until)
{
	*r = (struct remote){.url = url, .reply.limit = LONGEST_REPLY, .body.limit = LONGEST_REPLY};
	if (url->hosts != 1) {
		why_set(&r->why, EXIT_USAGE, "%s:// takes one host", url->scheme);
		return REPLY_FATAL;
	}
	if (transfer_open(&r->transfer) != 0) {
		why_set(&r->why, EXIT_INTERNAL, "out of memory");
		return REPLY_FATAL;
	}
	return strcmp(url->scheme, "sftp") == 0 ? sftpconn_open(r, until) : ftpconn_open(r, until);
}

void remote_close(struct remote *r)
{
	transfer_close(&r->transfer);
	buffer_clear(&r->reply);
	buffer_clear(&r->body);
}
