#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -j N --take=K: several slots for one holder.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CROWD=${CROWD:-$SOURCE/build/tests/crowd}
export SEMLOCK PROBE

slots_of() {
	tr '\0' '\n' <"/proc/${COMMAND[$1]}/environ" | sed -n 's/^SEMLOCK_SLOT=//p'
}

@test "the command finds the numbers of its slots, and others find the rest" {
	local method
	for method in flock ofd posix; do
		hold_as one -m $method -j 4 "l.$method"
		hold_as two -m $method -j 4 --take=2 "l.$method"
		[ "$(slots_of two)" = 1,2 ]
		expect_status 1 "$SEMLOCK" -n -m $method -j 4 --take=2 "l.$method" true
		let_go one
		expect_status 0 "$SEMLOCK" -n -m $method -j 4 --take=2 "l.$method" sh -c 'echo "$SEMLOCK_SLOT"'
		expect_out 0,3
		expect_status 0 "$SEMLOCK" -n -m $method -j 4 "l.$method" true
		let_go two
		expect_status 0 "$SEMLOCK" -n -m $method -j 4 --take=4 "l.$method" true
		expect_status 0 "$SEMLOCK" -n -m $method "l.$method" true
		rm ./*.up ./*.down
	done
}

@test "the first in the queue collects its slots before smaller, later waiters" {
	local method
	for method in flock ofd posix; do
		hold_as one -m $method -j 4 "l.$method"
		hold_as two -m $method -j 4 "l.$method"
		queue_as big -m $method -j 4 --take=3 "l.$method"
		queue_as small -m $method -j 4 "l.$method"
		expect_status 1 "$SEMLOCK" -n -m $method -j 4 "l.$method" touch ran
		let_go one
		ready big
		[ "$(slots_of big | tr -cd ,)" = ,, ]
		"$PROBE" blocked "${PID[small]}"
		let_go big
		ready small
		let_go two
		let_go small
		rm ./*.up ./*.down
	done
	[ ! -e ran ]
}

@test "a collector leaves a slot to a holder's child, and a free one to --first" {
	for method in flock ofd; do
		fifos parent
		start parent "$SEMLOCK" -m $method -j 2 "l.$method" sh -c \
			'"$1" hold parent.up parent.down; "$0" -m "$2" -j 2 "l.$2" touch ran' "$SEMLOCK" "$PROBE" $method
		ready parent
		queue_as collector -m $method -j 2 --take=2 "l.$method"
		expect_status 0 "$SEMLOCK" -w "$PATIENCE" --first -m $method -j 2 "l.$method" true
		let_go parent
		ready collector
		[ -e ran ]
		let_go collector
		rm ran ./*.up ./*.down
	done
}

@test "a collector that may be superseded pauses when it gives slots back" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	hold_as one -j 2 l
	start collector strace -qq -o calls -e trace=nanosleep,clock_nanosleep \
		"$SEMLOCK" --supersede -j 2 --take=2 l true
	eventually grep -qs tv_nsec=1500000 calls
	let_go one
	ended collector 0
}

@test "a killed holder, and a killed collector, free all their slots" {
	hold_as big -j 4 --take=3 l
	kill -KILL "${PID[big]}" "${COMMAND[big]}"
	ended big 137
	expect_status 0 "$SEMLOCK" -w 60 -j 4 --take=4 l true
	hold_as one -j 4 l
	queue_as collector -j 4 --take=4 l
	kill -KILL "${PID[collector]}"
	ended collector 137
	expect_status 0 "$SEMLOCK" -n -j 4 --take=3 l true
	let_go one
}

@test "a collector whose time is up gives all its slots back" {
	hold_as one -j 4 l
	expect_status 1 "$SEMLOCK" -w .2 -j 4 --take=4 l true
	expect_status 0 "$SEMLOCK" -n -j 4 --take=3 l true
	let_go one
}

# Without a queue each is the first: two that each had a part would wait for each other.
@test "without a queue, two collectors do not wait for each other forever" {
	namespaces -m
	cat >inside <<-'END'
		mount -t tmpfs none /dev/shm && umount /dev/shm
		mount --bind /proc/self/fdinfo /dev/shm || exit
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			"$SEMLOCK" -j 4 --take=3 l true &
		done
		wait
	END
	expect_status 0 timeout "$PATIENCE" unshare -m sh inside
}

@test "jobs of all sizes, some killed, use at most four slots; none is stuck" {
	starts_many
	mkdir d
	cat >mixed <<-'END'
		#!/bin/bash
		semlock=$1 lock=$2
		shift 2
		exec "$semlock" -j 4 --take=$((1 + $$ % 3)) "$lock" "$@"
	END
	chmod +x mixed
	local seconds=${THOROUGH:+4}
	expect_status 0 "$CROWD" kills 20 "${seconds:-2}" 1 4 d ./mixed "$SEMLOCK" d/l
	[[ $out == "visits "*" overlaps 0 places-used 4" ]] || complain "$out"
	expect_status 0 "$SEMLOCK" -w 60 -j 4 --take=4 d/l true
}

@test "--who shows all the slots of a holder that has several in a row" {
	hold_as big -j 4 --take=3 l
	expect_status 1 "$SEMLOCK" --who l
	[[ $out == *"slot 0-2"* ]] || complain "$out"
	expect_status 1 "$SEMLOCK" --who --json l
	jq -e '.[0].holders | map([.slot, .last_slot]) == [[0, 2]]' <.out >/dev/null || complain "$out"
	let_go big
}

@test "--hold says all the slots" {
	: >.out
	expect_status 0 "$SEMLOCK" --hold -j 4 --take=3 l < <(until_ok)
	expect_out "OK slot=0,1,2"
}

@test "what makes no sense is refused" {
	refused 64 --take "$SEMLOCK" --take=2 l true
	refused 64 --take "$SEMLOCK" -j 2 --take=3 l true
	refused 64 --take "$SEMLOCK" -j 2 --take=0 l true
	refused 64 --take "$SEMLOCK" -j 2 --take=2 8 8>>l
	refused 64 -j "$SEMLOCK" -m excl -j 2 --take=2 k true
	[ ! -e k ]
}

@test "-n is busy only if the slots are, not beside a slow process that tries" {
	command -v strace >/dev/null || skip "no strace"
	[ -z "${SANITIZED-}" ] || skip "LeakSanitizer cannot work under strace"
	under_valgrind && skip "valgrind cannot work under strace"
	start slow strace -qq -o trace -e trace=fcntl -e inject=fcntl:delay_exit=3000000:when=1 "$SEMLOCK" -n -j 4 --take=2 l true
	until grep -q F_OFD_SETLK trace 2>/dev/null; do :; done
	expect_status 0 "$SEMLOCK" -n -j 4 --take=2 l true
	expect_status 0 "$SEMLOCK" -n -j 4 l true
	kill -0 "${PID[slow]}"
	ended slow 0
	hold_lock -j 4 --take=3 l
	expect_status 1 "$SEMLOCK" -n -j 4 --take=2 l true
	expect_status 0 "$SEMLOCK" -n -j 4 l true
	let_go
}

@test "-n passes a collector that makes no progress, and holds what it takes" {
	local collectors=$(((1 << 62) + 4097)) # the byte of the one that collects (SLOT_OF_COLLECTOR)
	for method in flock ofd; do
		fifos collector
		: >"l.$method"
		start collector "$PROBE" fcntl-hold "l.$method" ofd write $collectors 1 collector.up collector.down
		ready collector
		fifos past
		start past "$SEMLOCK" -n -m $method -j 4 --take=2 "l.$method" "$PROBE" hold past.up past.down
		ready past
		expect_status 1 "$SEMLOCK" -n -m $method -j 4 --take=3 "l.$method" touch ran
		expect_status 0 "$SEMLOCK" -n -m $method -j 4 --take=2 "l.$method" true
		let_go past
		let_go collector
		rm ./*.up ./*.down
	done
	[ ! -e ran ]
}
