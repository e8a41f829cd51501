/* etcdctl - what the environment says of the cluster and its users, by the names that etcdctl(1) gives it. */
#ifndef LOCKSMITH_ETCDCTL_H
#define LOCKSMITH_ETCDCTL_H

#include "locksmith/common/login.h"
#include "locksmith/common/url.h"
#include "locksmith/common/why.h"

/* url_parse; etcd:///NAME has the hosts of ETCDCTL_ENDPOINTS, or 127.0.0.1:2379. */
int etcdctl_url(const char *text, struct url *url, struct why *why);

/* login_find, but ETCDCTL_USER (USER[:PASSWORD]) and ETCDCTL_PASSWORD come before SEMLOCK_USER and
   SEMLOCK_PASSWORD. */
int etcdctl_login(const struct url *url, struct login *login, struct why *why);

/* The variable ETCDCTL_NAME, else SEMLOCK_NAME, else NULL. */
const char *etcdctl_variable(const char *name);

#endif
