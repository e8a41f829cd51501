#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Waiting for a lock, and being served in the order of arrival.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# in_line NAME ARGS...: a waiter that writes NAME into the file "order" when it is served.
in_line() {
	local name=$1
	shift
	start "$name" "$SEMLOCK" "$@" sh -c 'echo "$0" >>order' "$name"
	"$PROBE" blocked "${PID[$name]}"
}

served() {
	[ "$(tr '\n' ' ' <order)" = "$* " ] || complain "served: $(tr '\n' ' ' <order)" "instead of: $*"
}

@test "a second taker waits until the first has ended" {
	hold_lock l
	queue_as second l
	[ ! -s second.out ]
	expect_held l
	let_go
	ready second
	expect_held l
	let_go second
	expect_free l
}

@test "waiters are served in the order in which they came" {
	hold_lock l
	for name in a b c d e f g h; do in_line $name l; done
	let_go
	for name in a b c d e f g h; do ended $name 0; done
	served a b c d e f g h
}

@test "a waiter that is killed costs the others nothing" {
	hold_lock l
	for name in a b c d e; do in_line $name l; done
	kill -KILL "${PID[a]}" "${PID[c]}"
	ended a 137
	ended c 137
	let_go
	for name in b d e; do ended $name 0; done
	served b d e
}

# hurried NAME: a waiter in line, with a time limit
hurried() {
	start "$1" "$SEMLOCK" -w "${room}ms" l sh -c 'echo "$0" >>order' "$1"
	"$PROBE" blocked "${PID[$1]}"
}

@test "a waiter that gives up costs the others nothing" {
	hold_lock l
	in_line a l
	with_room hurried b # b has to be in line before its time is up
	in_line c l
	in_line d -w 60 l
	ended b 1
	let_go
	for name in a c d; do ended $name 0; done
	served a c d
}

@test "a waiter that is stopped does not hold up the others for ever" {
	hold_lock l
	queue_as first l
	kill -STOP "${PID[first]}"
	"$PROBE" state "${PID[first]}" T
	let_go
	expect_status 0 "$SEMLOCK" l true
	kill -CONT "${PID[first]}"
	ready first
	let_go first
}

@test "no two commands are ever inside at once" {
	starts_many
	often 400
	expect_status 0 "$PROBE" storm "$often" 8 "$SEMLOCK" l "$PROBE" inside room 20
	expect_out "0 x $often"
	expect_status 0 "$PROBE" verdict room $((20 * often))
}

@test "no two are inside at once when waiters are killed and time out" {
	starts_many
	start killers sh -c 'while :; do timeout -s KILL .01 "$0" l "$1" inside -s other; done' \
		"$SEMLOCK" "$PROBE"
	start hurried sh -c 'while :; do "$0" -w .002 l "$1" inside -s other; done' "$SEMLOCK" "$PROBE"
	expect_status 0 "$PROBE" storm 200 4 "$SEMLOCK" l "$PROBE" inside room 20
	expect_out "0 x 200"
	expect_status 0 "$PROBE" verdict room 4000
}

@test "a waiter that may write no file (ulimit -f 0) waits all the same" {
	hold_lock l
	start waiter bash -c 'ulimit -f 0; exec "$0" l true' "$SEMLOCK"
	"$PROBE" blocked "${PID[waiter]}"
	let_go
	ended waiter 0
}

@test "a queue leaves nothing beside the lock file" {
	mkdir place
	hold_lock place/l
	queue_as second place/l
	let_go
	ready second
	let_go second
	[ "$(ls -A place)" = l ]
	[ ! -s place/l ]
}

@test "a lock file that one may only read has a queue too" {
	: >l
	chmod 444 l
	chmod 777 .
	hold_lock l
	fifos second
	chmod 666 second.up second.down
	others_may_run
	start second setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$SEMLOCK" l "$PROBE" hold second.up second.down
	"$PROBE" blocked "${PID[second]}"
	let_go
	ready second
	let_go second
}

in_order() {
	[ "$(wc -l <order)" -eq "$1" ]
}

@test "a queue that is removed under its waiters: they keep their order" {
	hold_lock l
	for i in 1 2 3 4; do in_line $i l; done
	inode=$(stat -c %i "$(queue_of l)")
	rm "$(queue_of l)"
	# The second one looks within a second, and the others follow: then a newcomer has to stand behind them.
	eventually has_tickets "$(queue_of l)" 3
	[ "$(stat -c %i "$(queue_of l)")" != "$inode" ]
	in_line 5 l
	let_go
	eventually in_order 5
	served 1 2 3 4 5
}

@test "a queue that is removed: readers do not pass the writers that wait" {
	hold_lock -s l
	for i in 1 2; do in_line w$i l; done
	rm "$(queue_of l)"
	eventually has_tickets "$(queue_of l)" 1
	in_line reader -s l
	let_go
	eventually in_order 3
	served w1 w2 reader
}
