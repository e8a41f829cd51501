#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Lock files that are deleted, by semlock or by another program.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# overlap PROGRAM: three commands under one lock.  The first deletes the lock file as its last act, while the
# second waits; the third comes while the second is inside, and leaves $status and $out.
overlap() {
	local program=$1 third
	rm -f l ./*.up ./*.down
	fifos first
	fifos second
	start first "$program" l sh -c '"$0" hold first.up first.down; rm l' "$PROBE"
	ready first
	start second "$program" l "$PROBE" hold second.up second.down
	"$PROBE" blocked "${PID[second]}"
	release first
	ended first 0
	ready second
	capture "$program" -n l echo inside too
	third=$status
	let_go second
	status=$third
}

BROKEN=${BROKEN:-$SOURCE/build/tests/semlock-broken}

@test "a command that deletes the lock file last lets nobody in beside the next" {
	overlap "$SEMLOCK"
	[ "$status" -eq 1 ]
	expect_silent
}

@test "with flock(1) instead of semlock two commands get in: the test can fail" {
	system=$(system_flock)
	[ -n "$system" ] || skip "no util-linux flock on this machine"
	overlap "$system"
	expect_out "inside too"
}

@test "eight loops that delete the lock file never overlap" {
	starts_many
	often 800
	expect_status 0 "$PROBE" storm "$often" 8 "$SEMLOCK" l sh -c '"$0" inside room 20; rm -f l' "$PROBE"
	expect_out "0 x $often"
	expect_status 0 "$PROBE" verdict room $((20 * often))
}

@test "eight loops with --rm never overlap, and leave nothing" {
	starts_many
	often 800
	expect_status 0 "$PROBE" storm "$often" 8 "$SEMLOCK" --rm l "$PROBE" inside room 20
	expect_out "0 x $often"
	expect_status 0 "$PROBE" verdict room $((20 * often))
	[ ! -e l ]
}

@test "--rm among commands without it, with -n and with -w" {
	starts_many
	start quick sh -c 'while :; do "$0" -n --rm l "$1" inside -s room 5; done' "$SEMLOCK" "$PROBE"
	start timed sh -c 'while :; do "$0" -w .002 -s l "$1" inside -s room 5; done' "$SEMLOCK" "$PROBE"
	often 300
	expect_status 0 "$PROBE" storm "$often" 4 "$SEMLOCK" l "$PROBE" inside room 20
	expect_out "0 x $often"
	expect_status 0 "$PROBE" verdict room $((20 * often))
}

@test "a file put in place of another is a new lock, and waiters get it" {
	hold_lock l
	queue_as second l
	: >new
	mv new l
	let_go
	ready second
	expect_held l
	let_go second
}

@test "if a directory is removed during a wait, its lock cannot be opened" {
	for method in flock mkdir; do
		mkdir d
		hold_as holder$method -m $method d/l
		start waiter "$SEMLOCK" -m $method -E 9 d/l true
		"$PROBE" blocked "${PID[waiter]}"
		mv d gone$method
		release holder$method
		ended waiter 66
		wait "${PID[holder$method]}" || true
	done
}

@test "--rm removes the lock file at the end, and not before" {
	hold_lock --rm l
	[ -e l ]
	let_go
	[ ! -e l ]
}

@test "--rm removes the file however the command ends, not after a refusal" {
	expect_status 3 "$SEMLOCK" --rm l sh -c 'exit 3'
	[ ! -e l ]
	expect_status 137 "$SEMLOCK" --rm l sh -c 'kill -9 $$'
	[ ! -e l ]
	hold_lock l
	expect_status 1 "$SEMLOCK" --rm -n l true
	[ -e l ]
	expect_status 1 "$SEMLOCK" --rm -w .01 l true
	[ -e l ]
	expect_held l
	let_go
}

@test "--rm leaves a file of which another process holds another part" {
	for method in ofd posix; do
		hold_as other -m $method --start 1 --length 1 l
		expect_status 0 "$SEMLOCK" --rm -m $method --start 0 --length 1 l true
		expect_status 1 "$SEMLOCK" -n -m $method --start 1 --length 1 l true
		let_go other
		expect_status 0 "$SEMLOCK" --rm -m $method --start 0 --length 1 l true
		[ ! -e l ]
		rm other.up other.down
	done
}

@test "--rm leaves a file that is not empty, reports it, and keeps the status" {
	echo data >l
	for way in "" "-m ofd" -o; do
		# shellcheck disable=SC2086 # words
		refused 5 "l: not removed: the file is not empty" "$SEMLOCK" $way --rm l sh -c 'exit 5'
	done
	expect_status 0 "$SEMLOCK" --rm l sh -c '[ "$(cat l)" = data ]; : >l'
	expect_silent
	[ ! -e l ]
	expect_status 0 "$SEMLOCK" --rm l sh -c 'echo written >l'
	[ "$err" = "semlock: l: not removed: the file is not empty" ]
	[ "$(cat l)" = written ]
	expect_status 0 "$SEMLOCK" --rm -f l other true
	[ ! -e other ]
	[ -e l ]
}

@test "a lock file that is deleted while its holder runs lets the next one in" {
	hold_lock l
	rm l
	expect_status 0 "$SEMLOCK" -n l true
	let_go
}

@test "--rm removes only what is its own" {
	hold_lock --rm l
	mv l moved
	echo theirs >l
	let_go
	[ "$(cat l)" = theirs ]
	[ -e moved ]
}

@test "--rm does not mind a file that is gone" {
	hold_lock --rm l
	rm l
	let_go
	[ ! -s holder.err ] || complain "$(cat holder.err)"
	[ ! -e l ]
}

@test "--rm when others wait: each has the lock of that name in turn" {
	hold_lock --rm l
	queue_as second --rm l
	let_go
	ready second
	expect_held l
	queue_as third --rm l
	let_go second
	ready third
	expect_held l
	let_go third
	[ ! -e l ]
}

@test "a name that always means another file by then: -w is kept, and -n ends" {
	for option in "-w .5" -n; do
		# shellcheck disable=SC2086 # an option and its argument
		SEMLOCK_BROKEN=moving expect_status 1 timeout "$PATIENCE" "$BROKEN" $option l touch ran
		[ ! -e ran ]
	done
}
