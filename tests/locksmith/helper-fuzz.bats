#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The parsers of semlock-locksmith, given what is in tests/fuzz/seeds, as in fuzz.bats.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

FUZZ=${FUZZ:-$SOURCE/build/tests/fuzz}

replay() {
	expect_status 0 "$FUZZ/$1" "$SOURCE/tests/fuzz/seeds/$1"/*
	[ ! -s .err ] || complain "$1:" "$err" || return
	[ "${out%% *}" -ge 200 ] || complain "$1 has tried only $out"
}

@test "listings, tokens and URLs, cut off anywhere" {
	replay server
}

@test "keys and watches of etcd, cut off anywhere" {
	replay etcd
}
