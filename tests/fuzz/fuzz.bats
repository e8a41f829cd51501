#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The parsers, given tests/fuzz/seeds: real examples of each format, and inputs that once broke a parser; each also
# cut off anywhere, and with any byte replaced.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/replay

@test "durations stay below a century, and mean what libc says" {
	replay duration
}

@test "holder records are read back as they were written, halves of them never" {
	replay record
}

@test "lines of /proc make no trouble, whatever a program calls itself" {
	replay proc
}

@test "words of others are harmless on a terminal, and proper JSON" {
	replay words
}

@test "command lines are refused, or make sense" {
	replay options
}

@test "answers of semlock-locksmith, cut off anywhere" {
	replay answers
}

@test "a parser that is wrong is found out" {
	printf 'x\n' >wrong
	expect_status 0 "$FUZZ/words" wrong
	expect_status 1 "$FUZZ/words" is-not-there
	expect_status 1 "$FUZZ/words"
}
