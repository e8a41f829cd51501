#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --toggle: the second call switches off what the first has switched on.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

@test "each second call switches off what the first has switched on" {
	for _ in 1 2; do
		hold_as on --toggle l
		expect_status 0 "$SEMLOCK" --toggle l echo on again
		expect_out ""
		ended on 143
		expect_free l
		rm on.up on.down
	done
}

@test "each way of holding is switched off" {
	for way in -o -F "-m ofd" "-m posix"; do
		method=
		case $way in *-m*) method=$way ;; esac
		# shellcheck disable=SC2086
		hold_as on $way l
		# shellcheck disable=SC2086
		expect_status 0 "$SEMLOCK" $method --toggle l true
		ended on 143
		rm on.up on.down
	done
}

@test "an exclusive call switches off all readers, but not the next writer" {
	for reader in one two three; do
		hold_as $reader -s l
	done
	queue_as next l
	expect_status 0 "$SEMLOCK" --toggle l true
	for reader in one two three; do
		ended $reader 143
	done
	ready next
	let_go next
}

@test "--toggle ends when the lock is free, not before" {
	fifos on
	start on "$SEMLOCK" l sh -c 'trap "" TERM; "$0" hold on.up on.down; :' "$PROBE"
	ready on
	start off "$SEMLOCK" --toggle l true
	"$PROBE" pause 300
	kill -0 "${PID[off]}"
	release on
	ended off 0
	ended on 0
}

# If the limit came before the holder was signalled, no holder has been signalled.
killed_after_the_limit() {
	capture "$SEMLOCK" -w "${room}ms" --kill-after "$((room + 200))ms" --toggle l true
	[ "$status" -eq 0 ]
}

@test "--kill-after: the holder has to end, whatever -w says" {
	fifos on
	start on "$SEMLOCK" l "$PROBE" with-ignored TERM -- "$PROBE" hold on.up on.down
	ready on
	with_room killed_after_the_limit
	ended on 137
}

# semlock passes TERM on to its command; KILL goes to the command itself, and then the command's status is semlock's.
@test "a copy of semlock by another name is known, and KILL ends its command" {
	cp "$SEMLOCK" semlock-static
	for way in "" "-m ofd" "-m posix" "-m excl" "-m mkdir" "-m symlink"; do
		fifos on
		# shellcheck disable=SC2086 # words
		start on ./semlock-static $way l "$PROBE" hold on.up on.down
		ready on
		# shellcheck disable=SC2086 # words
		expect_status 1 "$SEMLOCK" --who $way l
		grep -q "^held *${COMMAND[on]} " .out || complain "$way" "$out"
		# shellcheck disable=SC2086 # words
		expect_status 0 ./semlock-static --toggle=KILL $way l true
		ended on 137
		rm -rf on.* l
	done
	fifos on
	start on ./semlock-static -o l "$PROBE" hold on.up on.down
	ready on
	expect_status 1 "$SEMLOCK" --who l
	grep -q "^held *${COMMAND[on]} " .out || complain "-o" "$out"
	let_go on
}

@test "the next holder after the stopped one is left alone" {
	hold_as on l
	queue_as next l
	expect_status 0 "$SEMLOCK" --toggle l true
	ended on 143
	ready next
	let_go next
}

# The command takes a second lock, and would end with 99 if another command had that lock.
@test "100 pairs at the same moment: never two runs, and always a defined end" {
	for i in $(seq 100); do
		start a "$SEMLOCK" --toggle l "$SEMLOCK" -n -E 99 -F -m posix room "$PROBE" pause 3
		start b "$SEMLOCK" --toggle l "$SEMLOCK" -n -E 99 -F -m posix room "$PROBE" pause 3
		for name in a b; do
			status=0
			wait "${PID[$name]}" || status=$?
			[ $status -eq 0 ] || [ $status -eq 143 ] || complain "pair $i: $name ended with $status" "$(cat $name.err)"
		done
		expect_free l
	done
}

@test "locks made of files: on, off, on, off" {
	for method in excl link mkdir symlink rename; do
		[ $method != rename ] || "$SEMLOCK" -m rename --init l true
		for _ in 1 2; do
			hold_as on --toggle -m $method l
			expect_status 0 "$SEMLOCK" --toggle -m $method l echo on again
			expect_out ""
			[ ! -e l ] || [ $method = rename ] # released before --toggle returns
			[ ! -L l ]
			[ ! -e l.held ]
			ended on 143
			rm on.up on.down
		done
	done
}

@test "locks made of files: --toggle ends when the lock is free, not before" {
	for method in excl symlink; do
		fifos on
		start on "$SEMLOCK" -m $method l sh -c 'trap "" TERM; "$0" hold on.up on.down; :' "$PROBE"
		ready on
		start off "$SEMLOCK" -m $method --toggle l true
		"$PROBE" pause 300
		kill -0 "${PID[off]}"
		release on
		ended off 0
		[ ! -e l ]
		[ ! -L l ]
		ended on 0
		rm on.up on.down
	done
}

@test "symlink: a semlock stopped after its command is continued, to release" {
	fifos on
	mkdir crash
	ln -s "${CRASHABLE_SEMLOCK:-$SOURCE/build/tests/semlock-crashable}" crash/semlock
	SEMLOCK_CRASH=symlink.release:stop start on crash/semlock -m symlink l "$PROBE" hold on.up on.down
	ready on
	release on
	"$PROBE" state "${PID[on]}" T
	expect_status 1 "$SEMLOCK" --who -m symlink l
	[ "$(awk '$1 == "held" { print $2 }' .out)" = "${PID[on]}" ] || complain "$out"
	expect_status 0 "$SEMLOCK" -m symlink --toggle l true
	ended on 0
	[ ! -L l ]
}

@test "locks made of files: 100 pairs at the same moment" {
	for method in excl symlink; do
		for i in $(seq 100); do
			start a "$SEMLOCK" -m $method --toggle l "$SEMLOCK" -n -E 99 -F room "$PROBE" pause 3
			start b "$SEMLOCK" -m $method --toggle l "$SEMLOCK" -n -E 99 -F room "$PROBE" pause 3
			for name in a b; do
				status=0
				wait "${PID[$name]}" || status=$?
				[ $status -eq 0 ] || [ $status -eq 143 ] || complain "$method, pair $i: $name ended with $status" "$(cat $name.err)"
			done
			expect_status 0 "$SEMLOCK" -n -m $method l true
		done
	done
}

@test "what makes no sense is refused" {
	refused 64 --toggle "$SEMLOCK" --toggle 8
	refused 64 --toggle "$SEMLOCK" --toggle -n l true
}
