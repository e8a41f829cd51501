#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --first: a place before all waiters, without stopping the holder.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "waiters with --first are served before all others, in their own order" {
	local method name
	for method in flock ofd posix excl mkdir "flock -j1"; do
		read -ra way <<<"-m $method l.${method%% *}"
		hold_lock "${way[@]}"
		queue_as usual "${way[@]}"
		queue_as one --first "${way[@]}"
		queue_as two --first "${way[@]}"
		release holder
		for name in one two usual; do
			ready $name
			[ $name = usual ] || "$PROBE" blocked "${PID[usual]}"
			let_go $name
		done
		ended holder 0
		rm ./*.up ./*.down
	done
}

@test "the holder is left alone" {
	hold_lock l
	expect_status 1 "$SEMLOCK" --first -w .1 l true
	let_go
}

@test "a killed waiter with --first costs the others nothing" {
	hold_lock l
	queue_as usual l
	queue_as killed --first l
	kill -KILL "${PID[killed]}"
	ended killed 137
	let_go
	ready usual
	let_go usual
}

@test "-n with --first has a free lock beside waiters, and no other" {
	hold_lock l
	queue_as stopped l
	expect_status 1 "$SEMLOCK" --first -n l true
	kill -STOP "${PID[stopped]}"
	"$PROBE" state "${PID[stopped]}" T
	let_go
	expect_status 0 "$SEMLOCK" --first -n l true
	kill -CONT "${PID[stopped]}"
	ready stopped
	let_go stopped
}

@test "a descriptor can be first, too" {
	exec 8>l
	hold_as holder l 8>&-
	queue_as usual l 8>&-
	start first "$SEMLOCK" --first 8
	"$PROBE" blocked "${PID[first]}"
	let_go holder
	ended first 0
	"$PROBE" blocked "${PID[usual]}"
	exec 8>&-
	ready usual
	let_go usual
}

@test "refused where there is no such place" {
	refused 64 --first "$SEMLOCK" --first --replace l true
	refused 64 --first "$SEMLOCK" --first --toggle l true
	refused 64 --first "$SEMLOCK" --first --queue-max=1 l true
	refused 64 --first "$SEMLOCK" --first -u 8 8>l
	[ ! -s l ]
}
