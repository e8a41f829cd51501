/* Which URLs are locks, and of which method. */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "methods/remote.h"

const struct method *remote_method(const char *name)
{
	static const struct {
		const char *scheme;
		const struct method *method;
	} schemes[] = {
	    {"etcd", &method_etcd},
	    {"etcds", &method_etcd},
	    {"ftp", &method_ftp},
	    {"ftpes", &method_ftp},
	    {"ftps", &method_ftp},
	    {"sftp", &method_ftp},
	};
	const char *end = strstr(name, "://");

	for (size_t i = 0; end != NULL && i < sizeof schemes / sizeof *schemes; i++)
		if (strlen(schemes[i].scheme) == (size_t)(end - name) &&
		    strncmp(name, schemes[i].scheme, (size_t)(end - name)) == 0)
			return schemes[i].method;
	return NULL;
}
