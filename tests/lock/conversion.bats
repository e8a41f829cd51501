#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# From shared to exclusive and back, on one descriptor.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	exec 8<>l
}

tidy() {
	exec 8>&-
}

@test "from shared to exclusive" {
	expect_status 0 "$SEMLOCK" -s 8
	expect_shared l
	expect_status 0 "$SEMLOCK" -x 8
	expect_held l
}

@test "from exclusive to shared" {
	expect_status 0 "$SEMLOCK" 8
	expect_held l
	expect_status 0 "$SEMLOCK" -s 8
	expect_shared l
	hold_as reader -s -n l
	let_go reader
}

@test "to exclusive is refused with -n while others share" {
	expect_status 0 "$SEMLOCK" -s 8
	hold_as reader -s l
	expect_status 1 "$SEMLOCK" -n -x 8
	expect_status 1 "$SEMLOCK" -w .01 -x 8
	let_go reader
	expect_status 0 "$SEMLOCK" -n -x 8
	expect_held l
}

@test "to exclusive waits for the others" {
	expect_status 0 "$SEMLOCK" -s 8
	hold_as reader -s l
	start upgrade "$SEMLOCK" -x 8
	"$PROBE" blocked "${PID[upgrade]}"
	let_go reader
	ended upgrade 0
	expect_held l
}

@test "to exclusive is queued for behind earlier waiters" {
	expect_status 0 "$SEMLOCK" -s 8
	hold_as reader -s l 8>&-
	queue_as first l 8>&-
	queue_as second l 8>&-
	start upgrade "$SEMLOCK" -x 8
	"$PROBE" blocked "${PID[upgrade]}"
	let_go reader
	for one in first second; do
		ready $one
		kill -0 "${PID[upgrade]}"
		let_go $one
	done
	ended upgrade 0
}

@test "--fcntl: a refused upgrade to exclusive keeps the shared lock" {
	if under_valgrind; then skip "valgrind 3.19 lets no signal into a wait for an OFD lock"; fi
	expect_status 0 "$SEMLOCK" --fcntl -s 8
	hold_as reader --fcntl -s l 8>&-
	for waiters in none one; do
		expect_status 1 "$SEMLOCK" --fcntl -n 8
		expect_status 1 "$SEMLOCK" --fcntl -w .05 8
		grep ADVISORY /proc/self/fdinfo/8 >held
		[[ $(<held) == *OFDLCK*READ* ]]
		[ $waiters = one ] || queue_as writer --fcntl l 8>&-
	done
	let_go reader
	kill -0 "${PID[writer]}"
	expect_status 1 "$SEMLOCK" --who --fcntl l
	grep -q "^held .*shared" .out || complain "$out"
	expect_status 0 "$SEMLOCK" --fcntl -u 8
	ready writer
	let_go writer
}

@test "--fcntl: an upgrade to exclusive is one step, ahead of the waiters" {
	expect_status 0 "$SEMLOCK" --fcntl -s 8
	hold_as reader --fcntl -s l 8>&-
	queue_as first --fcntl l 8>&-
	start upgrade "$SEMLOCK" --fcntl 8
	"$PROBE" blocked "${PID[upgrade]}"
	let_go reader
	ended upgrade 0
	kill -0 "${PID[first]}"
	grep -q "OFDLCK.*WRITE" /proc/self/fdinfo/8
	expect_status 0 "$SEMLOCK" --fcntl -s 8
	expect_status 0 "$SEMLOCK" --fcntl -n 8
	expect_status 0 "$SEMLOCK" --fcntl -u 8
	ready first
	let_go first
}

@test "--fcntl: a part of the file, and more of it" {
	if under_valgrind; then skip "valgrind 3.19 lets no signal into a wait for an OFD lock"; fi
	expect_status 0 "$SEMLOCK" -s --start 0 --length 10 8
	hold_as reader -s --start 10 --length 10 l 8>&-
	expect_status 1 "$SEMLOCK" -n --start 0 --length 20 8
	expect_status 1 "$SEMLOCK" -w .05 --start 0 --length 20 8
	grep -q "OFDLCK.*READ.* 0 9$" /proc/self/fdinfo/8
	let_go reader
	expect_status 0 "$SEMLOCK" -n --start 0 --length 20 8
	grep -q "OFDLCK.*WRITE.* 0 19$" /proc/self/fdinfo/8
}

@test "two upgrades of one descriptor's lock: the second keeps the first's lock" {
	CRASHABLE_SEMLOCK=${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}
	expect_status 0 "$SEMLOCK" -s 8
	hold_as reader -s l 8>&-
	SEMLOCK_CRASH=queue.joining:stop start second "$CRASHABLE_SEMLOCK" -x 8
	"$PROBE" state "${PID[second]}" T
	let_go reader
	expect_status 0 "$SEMLOCK" -n -x 8
	queue_as waiter l 8>&-
	kill -CONT "${PID[second]}"
	ended second 0
	expect_held l
	"$SEMLOCK" -u 8
	ready waiter
	let_go waiter
}

@test "two holders that upgrade at once both get the lock, one after the other" {
	fifos other
	start other bash -c 'exec 9<>l; "$0" -s 9; "$1" hold other.up other.down; "$0" -x 9 && echo upgraded; exec 9>&-' \
		"$SEMLOCK" "$PROBE"
	ready other
	expect_status 0 "$SEMLOCK" -s 8
	start upgrade "$SEMLOCK" -x 8
	"$PROBE" blocked "${PID[upgrade]}"
	release other
	ended upgrade 0
	expect_status 0 "$SEMLOCK" -u 8
	ended other 0
	[ "$(cat other.out)" = upgraded ]
}

@test "a shared lock let go is gone" {
	expect_status 0 "$SEMLOCK" -s 8
	expect_status 0 "$SEMLOCK" -x 8
	expect_status 0 "$SEMLOCK" -u 8
	expect_free l
}

@test "--fcntl --replace stops the other holder, not the descriptor's own shell" {
	if under_valgrind; then skip "valgrind 3.19 has no process descriptors"; fi
	expect_status 0 "$SEMLOCK" --fcntl -s 8
	hold_as reader --fcntl -s l 8>&-
	expect_status 0 "$SEMLOCK" --fcntl --replace 8
	ended reader 143
	grep -q "OFDLCK.*WRITE" /proc/self/fdinfo/8
}
