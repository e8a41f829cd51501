#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -s: many readers, or one writer.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "two readers are in at once" {
	hold_as one -s l
	hold_as two -s l
	expect_shared l
	let_go one
	expect_shared l
	let_go two
	expect_free l
}

@test "a reader keeps writers out, and a writer keeps readers out" {
	hold_as reader -s l
	expect_status 1 "$SEMLOCK" -n l true
	expect_status 1 "$SEMLOCK" -w .01 -x l true
	expect_status 0 "$SEMLOCK" -n -s l true
	let_go reader
	hold_as writer -x l
	expect_status 1 "$SEMLOCK" -n -s l true
	expect_status 1 "$SEMLOCK" -w .01 --shared l true
	let_go writer
}

@test "a writer waits for all readers" {
	hold_as one -s l
	hold_as two -s l
	queue_as writer l
	let_go one
	expect_shared l
	"$PROBE" blocked "${PID[writer]}"
	let_go two
	ready writer
	expect_held l
	let_go writer
}

@test "readers that come after a waiting writer wait behind it" {
	hold_as first -s l
	queue_as writer l
	queue_as late -s l
	among_few_locks expect_status 1 "$SEMLOCK" -s -n l true
	let_go first
	ready writer
	"$PROBE" blocked "${PID[late]}"
	let_go writer
	ready late
	let_go late
}

@test "all readers that wait in a row are let in together" {
	hold_as writer l
	queue_as one -s l
	queue_as two -s l
	queue_as three -s l
	let_go writer
	ready one
	ready two
	ready three
	expect_shared l
	let_go two
	let_go three
	let_go one
}

@test "a read-only lock file is enough for both" {
	: >l
	chmod 444 l
	expect_status 0 as_nobody "$SEMLOCK" -s l true
	expect_status 0 as_nobody "$SEMLOCK" -x l true
}

@test "a writer among looping readers is served" {
	for n in 1 2 3 4; do
		start "loop$n" sh -c 'while :; do "$0" -s l "$1" inside -s room 200; done' "$SEMLOCK" "$PROBE"
	done
	for n in 1 2 3 4 5; do
		expect_status 0 "$SEMLOCK" l "$PROBE" inside room 20
	done
	expect_status 0 "$PROBE" verdict room 100
}

@test "no reader and writer are ever inside at once" {
	starts_many
	start readers "$PROBE" storm 200 4 "$SEMLOCK" -s l "$PROBE" inside -s room 20
	expect_status 0 "$PROBE" storm 200 4 "$SEMLOCK" -x l "$PROBE" inside room 20
	ended readers 0
	expect_status 0 "$PROBE" verdict room 4000
	[[ $out == *"reads 4000 "* ]]
}
