#!/usr/bin/env bats
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
	for method in flock ofd; do
		expect_status 0 "$SEMLOCK" -m $method -s 8
		hold_as reader -m $method -s l 8>&-
		queue_as first -m $method l 8>&-
		queue_as second -m $method l 8>&-
		start upgrade "$SEMLOCK" -m $method -x 8
		"$PROBE" blocked "${PID[upgrade]}"
		let_go reader
		for one in first second; do
			ready $one
			kill -0 "${PID[upgrade]}"
			let_go $one
		done
		ended upgrade 0
		expect_status 0 "$SEMLOCK" -m $method -u 8
		rm ./*.up ./*.down
	done
}

@test "two commands make one descriptor's lock exclusive: the second does not let go of what the first got" {
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
