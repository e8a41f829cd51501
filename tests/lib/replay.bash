# SPDX-License-Identifier: MIT
# The harnesses of tests/fuzz, given the seeds.
# shellcheck shell=bash disable=SC2154 # loaded after helpers.bash

FUZZ=${FUZZ:-$SOURCE/build/tests/fuzz}

# replay NAME: the harness reports no fault in its seeds, and has tried at least 200 inputs.
replay() {
	expect_status 0 "$FUZZ/$1" "$SOURCE/tests/fuzz/seeds/$1"/*
	[ ! -s .err ] || complain "$1:" "$err" || return
	[ "${out%% *}" -ge 200 ] || complain "$1 has tried only $out"
}
