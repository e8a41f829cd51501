# SPDX-License-Identifier: MIT
# For the tests of semlock with a lock on a real S3 server, Ceph's radosgw: one for each test.
# shellcheck shell=bash

load ../lib/remote
load ../lib/servers/others
load ../lib/servers/s3

prepare() {
	prepare_remote
	unset SEMLOCK_LOOK_EVERY
	radosgw_server
}

tidy() { radosgw_stop; }
