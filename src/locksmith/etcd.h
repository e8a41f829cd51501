/* etcd - a lock that is a key under a lease, laid out as etcdctl lock lays it out. */
#ifndef LOCKSMITH_ETCD_H
#define LOCKSMITH_ETCD_H

#include "locksmith/options.h"
#include "locksmith/why.h"

/* The whole life of a lock, or --who, or --check. Returns the exit status, everything said. */
int etcd_run(const struct options *o, struct why *why);

/* Afterwards. STOPPED: nothing runs under the lock any more, so it is free even if it was lost. */
void etcd_end(bool stopped);

#endif
