#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A slice of make torture-remote: contenders for a lock on a server, while every process that takes part is killed
# and stopped.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote

prepare() { prepare_remote; }

# torture KIND ARG...: a run of tests/torture/remote
torture() { SHAKE_EVERY=${SHAKE_EVERY:-5} TMPDIR=$DIR "$SOURCE/tests/torture/remote" "$@"; }

# gone_well N: the figures of a run with N entries that has gone well.
gone_well() {
	grep -q "^entered=$1 overlaps=0 regressions=0 stuck=0 wrong=0 " .out || complain "$out" "$err"
	grep -q ": free$" .out
	grep -Eq "shakes=[1-9]" .out || complain "nothing was shaken: $out"
}

@test "FTP: four contenders, kills, stops, restarts: no overlap, nothing left" {
	SHAKE_EVERY=3 expect_status 0 torture ftp --rounds=12 --seed=4
	gone_well 48
}

@test "etcd: four contenders, kills, stops, restarts: no overlap, rising tokens" {
	expect_status 0 torture etcd --rounds=12 --seed=4
	gone_well 48
}

@test "three etcd nodes, leaders killed: no overlap, rising tokens" {
	SHAKE_EVERY=10 expect_status 0 torture etcd-kill --rounds=12 --seed=4
	gone_well 48
}

@test "PostgreSQL: kills, stops, restarts: no overlap, rising tokens" {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-postgresql" ] || skip "this build has no locks on PostgreSQL"
	SHAKE_EVERY=2 expect_status 0 torture postgresql --rounds=12 --seed=4
	gone_well 48
}

@test "ssh: contenders on both ends, kills, stops, restarts: no overlap" {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-ssh" ] || skip "this build has no locks by ssh"
	SHAKE_EVERY=4 expect_status 0 torture ssh --rounds=12 --seed=4
	gone_well 48
}

@test "S3: contenders, kills, stops, lost answers: no overlap, rising tokens" {
	[ -x "$LOCKSMITH_DIR/semlock-locksmith-s3" ] || skip "this build has no locks on S3"
	SHAKE_EVERY=2 expect_status 0 torture s3 --rounds=12 --seed=4
	gone_well 48
}

@test "Redis: contenders, kills, stops, restarts: no overlap, rising tokens" {
	command -v redis-server >/dev/null || skip "no redis-server here"
	SHAKE_EVERY=2 expect_status 0 torture redis --rounds=12 --seed=4
	gone_well 48
}
