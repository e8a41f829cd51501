/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_env.h - the environment variables of etcdctl(1) for the cluster and its users. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_ENV_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_ENV_H

#include "locksmith/common/url.h"
#include "report/error.h"

/* url_parse; etcd:///NAME has the hosts of ETCDCTL_ENDPOINTS, or 127.0.0.1:2379. */
int etcd_env_url(const char *text, struct url *url, struct error *error);

/* login_find, but ETCDCTL_USER (USER[:PASSWORD]) and ETCDCTL_PASSWORD come before SEMLOCK_USER and
   SEMLOCK_PASSWORD. */
int etcd_env_login(const struct url *url, struct login *login, struct error *error);

/* The variable ETCDCTL_NAME, else SEMLOCK_NAME, else NULL. */
const char *etcd_env_variable(const char *name);

#endif
