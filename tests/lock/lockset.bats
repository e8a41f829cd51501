#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# -f: more than one lock at once, all or none.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
CROWD=${CROWD:-$SOURCE/build/tests/crowd}

# two_files: sets $first and $second to a and b, in the order in which semlock takes them.
two_files() {
	: >a
	: >b
	if [ "$(stat -c %i a)" -lt "$(stat -c %i b)" ]; then
		first=a second=b
	else
		first=b second=a
	fi
}

@test "all of them are held, and let go at the end" {
	hold_lock -f b -f c a
	expect_held a
	expect_held b
	expect_held c
	expect_status 1 "$SEMLOCK" -n c true
	let_go
	expect_free a
	expect_free b
	expect_free c
}

tidy() { [ -z "${other-}" ] || rm -r "$other"; }

@test "on two file systems, in whichever order they are named: both are held" {
	other=$(mktemp -d /dev/shm/bats.XXXXXX)
	[ "$(stat -c %d "$other")" != "$(stat -c %d .)" ] || skip "/dev/shm is the file system of the tests"
	touch a
	for pair in "$other/b a" "a $other/b"; do
		hold_as first a
		# shellcheck disable=SC2086 # a list
		queue_as both -f $pair
		meanwhile+=$("$PROBE" free "$other/b") || true
		let_go first
		ready both
		expect_held a
		expect_held "$other/b"
		let_go both
		rm ./*.up ./*.down
	done
	case $meanwhile in freefree | heldheld) ;; *) complain "not in one order: $meanwhile" ;; esac
}

@test "each takes the mode before it" {
	hold_lock -s -f b -f c -x -f d -s a
	expect_shared a
	expect_shared b
	expect_shared c
	expect_held d
	let_go
}

@test "-n takes all or none" {
	local lock
	for lock in a b c; do
		hold_as holder -x $lock
		expect_status 1 "$SEMLOCK" -n -f b -f c a true
		expect_silent
		for other in a b c; do
			[ $other = $lock ] || expect_status 0 "$SEMLOCK" -n $other true
		done
		let_go
		rm -f holder.up holder.down
	done
	expect_status 0 "$SEMLOCK" -n -f b -f c a true
}

@test "one time limit for all, and none is held when it has passed" {
	hold_lock b
	expect_status 1 "$SEMLOCK" -w .1 -f b a true
	expect_free a
	expect_status 5 "$SEMLOCK" -E 5 -w .1 -f a b true
	expect_free a
	let_go
}

@test "while waiting for the later one only the earlier ones are held" {
	two_files
	hold_as later "$second"
	queue_as both -f a b
	expect_held "$first"
	let_go later
	ready both
	let_go both

	rm -f both.up both.down
	hold_as earlier "$first"
	queue_as both -f b a
	expect_free "$second"
	let_go earlier
	ready both
	expect_held "$second"
	let_go both
}

@test "the same file twice is one lock, in the stronger mode" {
	hold_lock -s -f a -x a
	expect_held a
	let_go
	rm -f holder.up holder.down
	hold_lock -x -f a -s a
	expect_held a
	let_go
	rm -f holder.up holder.down
	hold_lock -s -f a -s a
	expect_shared a
	let_go
}

@test "of the same file twice the command hears once, and of the stronger mode" {
	: >a
	ln a second
	for words in "-f a -s a" "-s -f a -x a" "-f a -s second" "-m posix -f a -s a"; do
		# shellcheck disable=SC2016,SC2086 # for the inner shell; words
		expect_status 0 "$SEMLOCK" $words sh -c 'echo "$SEMLOCK_MODE"'
		expect_out exclusive || complain "$words"
	done
}

@test "two names of one file are one lock" {
	: >a
	ln a second
	ln -s a third
	expect_status 0 "$SEMLOCK" -n -f second -f third a true
	hold_lock -s -f second -x -f third -s a
	expect_held a
	let_go
}

@test "a file that is replaced meanwhile is locked anew, and the others with it" {
	: >a
	: >b
	hold_lock b
	queue_as both -f a b
	mv b old
	: >b
	release holder
	ready both
	expect_held a
	expect_held b
	expect_free old
	let_go both
	ended holder 0
}

@test "the command inherits all the locks, and -o none" {
	hold_lock -f b a
	kill -KILL "${PID[holder]}"
	ended holder 137
	expect_held a
	expect_held b
	release holder
	"$PROBE" until-free a
	"$PROBE" until-free b
	rm -f holder.up holder.down
	hold_lock -o -f b a
	[ "$(find "/proc/${COMMAND[holder]}/fd" -lname "$PWD/[ab]" | wc -l)" -eq 0 ]
	let_go
}

@test "-F becomes the command with all the locks" {
	hold_lock -F -f b a
	[ "${PID[holder]}" = "${COMMAND[holder]}" ]
	expect_held a
	expect_held b
	let_go
	expect_free a
	expect_free b
}

@test "--rm removes all the files" {
	expect_status 0 "$SEMLOCK" --rm -f b -f c a true
	[ ! -e a ] && [ ! -e b ] && [ ! -e c ]
}

@test "the command hears of the first one" {
	expect_status 0 "$SEMLOCK" -s -f b -x a sh -c 'echo "$SEMLOCK_LOCK $SEMLOCK_MODE"'
	expect_out "a exclusive"
}

@test "what cannot be locked is named, and nothing stays held" {
	refused 66 no/such "$SEMLOCK" -f no/such a true
	expect_free a
	refused 64 -f "$SEMLOCK" -f a 8 8>l
}

@test "dining philosophers: no deadlock and no overlap, in any order of locks" {
	starts_many
	expect_status 0 "$CROWD" dine 5 200 1 . "$SEMLOCK"
	expect_out "meals 1000 overlaps 0"
}

@test "other methods, too" {
	local method
	for method in ofd posix; do
		hold_lock -m "$method" -f b a
		expect_status 1 "$SEMLOCK" -m posix -n a true
		expect_status 1 "$SEMLOCK" -m posix -n b true
		let_go
		rm -f holder.up holder.down
	done
}
