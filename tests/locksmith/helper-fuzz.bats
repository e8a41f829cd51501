#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The parsers of semlock-locksmith, given what is in tests/fuzz/seeds, as in fuzz.bats.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/replay

@test "listings, tokens and URLs, cut off anywhere" {
	replay server
}

@test "keys and watches of etcd, cut off anywhere" {
	replay etcd
}
